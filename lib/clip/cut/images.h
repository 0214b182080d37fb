// Turns each picture file into a sample: the unchanged bytes, and a json of measured facts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"
#include "shard/sample.h"

namespace vfm::clip {

/// The error of a picture that cannot be used. Other pictures of the batch are not affected.
class ImageError : public Error {
 public:
  using Error::Error;
};

/// Returns the picture's key, which does not depend on the batch. If `readable` is true, returns a
/// readable key (clip/store/names.h).
std::string image_key(const std::string& path, const std::string& hash, bool readable);

/// Returns the sample of a picture. Throws ImageError.
shard::Sample image_sample(const std::string& path, const std::string& hash, bool readable);

}  // namespace vfm::clip
