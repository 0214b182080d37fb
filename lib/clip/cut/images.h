// Makes samples of picture files: their bytes unchanged, with measured facts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"
#include "shard/sample.h"

namespace vfm::clip {

/// A picture cannot be used; other pictures of its batch are not affected.
class ImageError : public Error {
 public:
  using Error::Error;
};

/// The picture's key, which does not depend on its batch. `readable`: see clip/store/names.h.
std::string image_key(const std::string& path, const std::string& hash, bool readable);

/// The sample: members image_extension(path), which is the file, and json. Throws ImageError.
shard::Sample image_sample(const std::string& path, const std::string& hash, bool readable);

}  // namespace vfm::clip
