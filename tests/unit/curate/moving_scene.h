// Signatures of drawn videos: discs that move over a smooth ground, seen whole or in part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "curate/copies/change_codes.h"
#include "curate/copies/video_signature.h"
#include "unit/curate/drawing.h"

namespace drawing {

/// Grey levels at (x, y), 0 to 1 across the picture, and time t in seconds.
using MovingScene = std::function<double(double x, double y, double t)>;

/// The ground is `view`'s, the ways that four discs go are `motion`'s.
inline MovingScene discs(std::uint64_t view, std::uint64_t motion) {
  const Texture ground(view, 0.2);
  std::vector<float> random(32);
  vfm::Random(motion, vfm::Purpose::test).fill_uniform(random);
  return [=](double x, double y, double t) {
    double level = ground.at(x, y).y;
    for (std::size_t i = 0; i < 4; ++i) {
      const float* r = &random[8 * i];
      const double cx = 0.5 + 0.42 * std::sin((0.5 + r[0]) * t + 7 * r[1]);
      const double cy = 0.5 + 0.42 * std::sin((0.5 + r[2]) * t + 7 * r[3]);
      if (std::hypot(x - cx, y - cy) < 0.07 + 0.1 * r[4]) level = 255 * r[5];
    }
    return level;
  };
}

/// Pictures of `seconds` from time `begin` on, of the part of the scene that `crop` is.
inline std::vector<vfm::curate::SignaturePicture> film(const MovingScene& scene, double begin,
                                                       double seconds,
                                                       const vfm::curate::CropWindow& crop = {}) {
  constexpr int kSide = vfm::curate::kSignatureSide, kPoints = 2, kTimes = 4;
  std::vector<vfm::curate::SignaturePicture> pictures(
      static_cast<std::size_t>(seconds * vfm::curate::kSignatureRate));
  for (std::size_t k = 0; k < pictures.size(); ++k)
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        double sum = 0;
        for (int i = 0; i < kPoints * kPoints * kTimes; ++i) {
          const double px = (x + (i % kPoints + 0.5) / kPoints) / kSide;
          const double py = (y + (i / kPoints % kPoints + 0.5) / kPoints) / kSide;
          const double part = (i / (kPoints * kPoints) + 0.5) / kTimes;
          sum += scene(crop.left + px * (crop.right - crop.left),
                       crop.top + py * (crop.bottom - crop.top),
                       begin + (static_cast<double>(k) + part) / vfm::curate::kSignatureRate);
        }
        pictures[k][static_cast<std::size_t>(y * kSide + x)] = static_cast<std::uint16_t>(
            std::lround(vfm::curate::kLevelParts * sum / (kPoints * kPoints * kTimes)));
      }
  return pictures;
}

}  // namespace drawing
