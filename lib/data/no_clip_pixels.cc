// In the place of clip_pixels.cc and frame_strip.cc where FFmpeg is not installed.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "data/clip_pixels.h"
#include "data/frame_strip.h"

namespace vfm::data {

FrameCount read_windows(std::string_view, const std::string&, const std::string&,
                        const PixelOptions&, const TakeWindow&, const MakeCanvas&) {
  fail_usage("this program was built without FFmpeg, so it cannot read clips");
}

ClipPixels clip_pixels(std::string_view, const std::string&, const std::string&,
                       const PixelOptions&) {
  fail_usage("this program was built without FFmpeg, so it cannot read clips");
}

std::string frame_strip(std::span<const float>, std::span<const float>, int, int, int) {
  fail_usage("this program was built without FFmpeg, so it cannot make pictures");
}

}  // namespace vfm::data
