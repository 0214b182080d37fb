// The keys of --readable-names, which show a clip's origin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/rational.h"

namespace vfm::clip {

/// Returns a key such as "holiday-00h01m02s500-00h01m05s000-1a2b3c4d". The key has the source's
/// name without folder and extension, the clip's begin and end in the source, and the first 8
/// digits of `key`, the clip's usual key. Every reader of WebDataset accepts the key, which has at
/// most 80 ASCII letters, digits, '_' and '-'. Other characters become '_', and a long name is cut.
std::string readable_key(const std::string& path, const Span& span, const std::string& key);
/// Returns the readable key of a picture, such as "holiday-1a2b3c4d".
std::string readable_key(const std::string& path, const std::string& key);

}  // namespace vfm::clip
