// One frame of a clip, small, for a page. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::dataset {

/// A JPEG file, 192 pixels wide at most and 144 high, of the middle frame; of the 48th in long
/// clips. Empty if built without FFmpeg. The same bytes for the same clip. Throws Error, naming
/// `name` (its extension is the container's), if nothing can be decoded.
std::string clip_picture(std::string_view bytes, const std::string& name);

}  // namespace vfm::dataset
