// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/clip_meter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "curate/measures/camera_split.h"

namespace vfm::curate {
namespace {

constexpr float kBlackMean = 20, kBlackShare = 0.98f;  // grey levels; share of dark cells
constexpr float kFrozenDifference = 0.06f;             // mean grey levels per cell
constexpr float kRepeated = 0.2f;                      // of the smaller difference before and after

std::string hex_color(double y, double u, double v) {
  u -= 128, v -= 128;
  const auto byte = [](double x) { return std::clamp(static_cast<int>(std::lround(x)), 0, 255); };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(y + 1.402 * v), byte(y - 0.344 * u - 0.714 * v),
                     byte(y + 1.772 * u));
}

}  // namespace

FrameMeasures measure_frame(const FrameFeatures& f, const MotionField& motion, double aspect) {
  FrameMeasures m;
  m.brightness = f.luma.mean / 255;
  m.contrast = f.luma.deviation / 255;
  std::uint32_t saturation = 0;
  for (const std::uint8_t s : f.saturation)
    saturation += s;
  m.saturation = static_cast<float>(saturation) / (255.f * kChromaCells);
  m.black = f.luma.mean < kBlackMean && f.luma.dark > kBlackShare;
  m.difference = motion.difference;
  m.frozen = motion.difference < kFrozenDifference;
  // A cell is 1/64 of the width by 1/64 of the height; lengths are in diagonals.
  const double diagonal = std::hypot(aspect, 1.0) * kLumaSide;
  double sum = 0;
  for (const MotionVector& v : motion.vectors)
    sum += std::hypot(v.x * aspect, v.y);
  m.motion = static_cast<float>(sum / (diagonal * static_cast<double>(motion.vectors.size())));
  const MotionSplit split = split_motion(motion, f.picture, aspect);
  m.camera = split.camera, m.object = split.object;
  return m;
}

float row_sharpness(const media::Frame& frame) {
  constexpr int kRows = 16;
  const bool rgb = frame.layout == media::PixelLayout::rgb24;
  const int step = rgb ? 3 : 1;
  if (frame.width < 3) return 0;
  std::uint64_t sum = 0;
  for (int i = 0; i < kRows; ++i) {
    const int y =
        static_cast<int>((2 * static_cast<std::int64_t>(i) + 1) * frame.height / (2 * kRows));
    const std::uint8_t* p =
        frame.plane[0] + static_cast<std::ptrdiff_t>(y) * frame.stride[0] + (rgb ? 1 : 0);
    std::uint32_t row = 0;
    for (int x = 1; x + 1 < frame.width; ++x)
      row += static_cast<std::uint32_t>(
          std::abs(p[(x - 1) * step] - 2 * p[x * step] + p[(x + 1) * step]));
    sum += row;
  }
  return static_cast<float>(static_cast<double>(sum) / (255.0 * kRows * (frame.width - 2)));
}

void ClipMeter::add(const FrameMeasures& m, const SmallPicture& picture,
                    const media::Frame& frame) {
  if (looks()) {
    sharpness_ += row_sharpness(frame);
    pictures_.add(frame, picture);
    ++sharp_frames_;
    std::array<std::uint8_t, kChromaCells> luma;
    halve_luma(picture, luma);
    for (int i = 0; i < kChromaCells; ++i) {
      Bin& bin = bins_[luma[i] / 64 * 256 + picture.u[i] / 16 * 16 + picture.v[i] / 16];
      ++bin.count, bin.y += luma[i], bin.u += picture.u[i], bin.v += picture.v[i];
    }
  }
  if (frames_ > 0) {
    motion_ += m.motion, frozen_ += m.frozen;
    camera_ += m.camera, object_ += m.object;
    if (!m.frozen && frames_ > 2)
      doubled_ += last_ < kRepeated * std::min(before_last_, m.difference);
    before_last_ = last_, last_ = m.difference;
  }
  brightness_ += m.brightness, contrast_ += m.contrast, saturation_ += m.saturation;
  black_ += m.black;
  ++frames_;
}

ClipMeasures ClipMeter::result(double seconds) const {
  ClipMeasures r;
  if (frames_ == 0) return r;
  const auto n = static_cast<double>(frames_);
  r.motion = frames_ > 1 ? motion_ / (n - 1) : 0;
  r.motion_per_second = seconds > 0 ? r.motion * n / seconds : 0;
  r.camera_motion = frames_ > 1 ? camera_ / (n - 1) : 0;
  r.object_motion = frames_ > 1 ? object_ / (n - 1) : 0;
  r.brightness = brightness_ / n;
  r.contrast = contrast_ / n;
  r.saturation = saturation_ / n;
  r.sharpness = sharpness_ / static_cast<double>(sharp_frames_);
  r.black = static_cast<double>(black_) / n;
  r.frozen = static_cast<double>(frozen_) / n;
  r.doubled = static_cast<double>(doubled_) / n;
  r.pictures = pictures_.result();
  std::vector<int> order(kBins);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return bins_[a].count > bins_[b].count; });
  const auto cells = static_cast<double>(sharp_frames_) * kChromaCells;
  for (const int i : order) {
    const Bin& bin = bins_[i];
    const double share = static_cast<double>(bin.count) / cells;
    if (r.colors.size() == 3 || share < 0.02) break;
    const auto mean = [&](std::uint64_t total) {
      return static_cast<double>(total) / static_cast<double>(bin.count);
    };
    r.colors.push_back({hex_color(mean(bin.y), mean(bin.u), mean(bin.v)), share});
  }
  return r;
}

}  // namespace vfm::curate
