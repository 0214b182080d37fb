// Replaces clip_picture.cc if FFmpeg is not installed.
// SPDX-License-Identifier: Apache-2.0
#include "dataset/clip_picture.h"

namespace vfm::dataset {

std::string clip_picture(std::string_view, const std::string&) {
  return {};
}

}  // namespace vfm::dataset
