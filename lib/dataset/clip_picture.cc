// SPDX-License-Identifier: Apache-2.0
#include "dataset/clip_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "media/colour/scaler.h"
#include "media/container/picture_file.h"
#include "media/decode/decoder.h"

namespace vfm::dataset {
namespace {

constexpr int kMostWidth = 192, kMostHeight = 144;
constexpr std::int64_t kFarthest = 48;  // frames decoded at most
constexpr int kJpegScale = 7;           // FFmpeg's qscale, gives 5 to 8 KB per picture

}  // namespace

std::string clip_picture(std::string_view bytes, const std::string& name) {
  media::Decoder decoder(bytes, name);
  const media::StreamInfo info = decoder.info();
  const std::int64_t last = std::min(info.frames / 2, kFarthest);
  media::Frame frame, shown;
  for (std::int64_t i = 0; i <= last && decoder.next(frame); ++i)
    shown = frame;
  const double width = std::max(1, info.display_width), height = std::max(1, info.display_height);
  const double shrink = std::min({1.0, kMostWidth / width, kMostHeight / height});
  const auto side = [&](double size) {
    return std::max(2, static_cast<int>(std::lround(size * shrink)) & ~1);
  };
  media::RgbImage image;
  media::Scaler().to_rgb(shown,
                         {.rotation = info.rotation,
                          .mirror = info.mirror,
                          .width = side(width),
                          .height = side(height)},
                         image);
  return media::encode_jpeg(image, kJpegScale);
}

}  // namespace vfm::dataset
