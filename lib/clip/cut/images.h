// Picture files as samples: their bytes unchanged, with measured facts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"
#include "shard/sample.h"

namespace vfm::clip {

/// A picture that cannot be used. The other pictures of its batch are not affected.
class ImageError : public Error {
 public:
  using Error::Error;
};

/// The picture's key, independent of its batch. `readable`: as in clip/store/names.h.
std::string image_key(const std::string& path, const std::string& hash, bool readable);

/// Members: the file under image_extension(path), and json. `readable`: its key is as in
/// clip/store/names.h. Throws ImageError.
shard::Sample image_sample(const std::string& path, const std::string& hash, bool readable);

}  // namespace vfm::clip
