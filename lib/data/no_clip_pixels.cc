// In the place of clip_pixels.cc where FFmpeg is not installed.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "data/clip_pixels.h"

namespace vfm::data {

ClipPixels clip_pixels(std::string_view, const std::string&, const std::string&,
                       const ClipOptions&) {
  fail_usage("this program was built without FFmpeg, so it cannot read clips");
}

}  // namespace vfm::data
