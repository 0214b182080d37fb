// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/camera_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace vfm::curate {
namespace {

constexpr int kAllBlocks = kBlocks * kBlocks;
constexpr int kBlockCells = kLumaSide / kBlocks;               // side of a block, in cells
constexpr int kDetailSum = 2 * 2 * kBlockCells * kBlockCells;  // 2 levels per cell and direction
constexpr int kFewBlocks = 8;  // minimum number of detailed blocks for a fit
constexpr int kFitRounds = 4;
constexpr float kError = 0.25f;            // error of a vector, in cells
constexpr float kShareThatFollows = 0.4f;  // of the detailed blocks, in the last round

using Blocks = std::array<bool, kAllBlocks>;

/// The motion a[0] + a[1] * px + a[2] * py of a block. (px, py) is in blocks from the middle.
struct AffineField {
  std::array<float, 3> x{}, y{};

  MotionVector at(int block) const {
    const float px = static_cast<float>(block % kBlocks) - (kBlocks - 1) / 2.f;
    const float py = static_cast<float>(block / kBlocks) - (kBlocks - 1) / 2.f;
    return {x[0] + x[1] * px + x[2] * py, y[0] + y[1] * px + y[2] * py};
  }
};

Blocks blocks_with_detail(const SmallPicture& picture) {
  Blocks out{};
  for (int b = 0; b < kAllBlocks; ++b) {
    const std::uint8_t* p =
        picture.y.data() + b / kBlocks * kBlockCells * kLumaSide + b % kBlocks * kBlockCells;
    int sum = 0;
    for (int y = 0; y + 1 < kBlockCells; ++y, p += kLumaSide)
      for (int x = 0; x + 1 < kBlockCells; ++x)
        sum += std::abs(p[x + 1] - p[x]) + std::abs(p[x + kLumaSide] - p[x]);
    out[static_cast<std::size_t>(b)] = sum >= kDetailSum;
  }
  return out;
}

float middle_of(const MotionField& motion, const Blocks& use, float MotionVector::*part) {
  std::array<float, kAllBlocks> values;
  std::size_t n = 0;
  for (std::size_t b = 0; b < kAllBlocks; ++b)
    if (use[b]) values[n++] = motion.vectors[b].*part;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(values.begin(), middle, values.begin() + static_cast<std::ptrdiff_t>(n));
  return *middle;
}

/// Fits a field to the blocks `use`. Returns false if the blocks lie in a line.
bool fit_field(const MotionField& motion, const Blocks& use, AffineField& field) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  std::array<std::array<double, 3>, 2> right{};
  for (int b = 0; b < kAllBlocks; ++b) {
    if (!use[static_cast<std::size_t>(b)]) continue;
    const double px = b % kBlocks - (kBlocks - 1) / 2.0, py = b / kBlocks - (kBlocks - 1) / 2.0;
    n += 1, sx += px, sy += py, sxx += px * px, sxy += px * py, syy += py * py;
    const MotionVector& v = motion.vectors[static_cast<std::size_t>(b)];
    const double values[2] = {v.x, v.y};
    for (std::size_t k = 0; k < 2; ++k)
      right[k][0] += values[k], right[k][1] += values[k] * px, right[k][2] += values[k] * py;
  }
  const double c00 = sxx * syy - sxy * sxy, c01 = sxy * sy - sx * syy, c02 = sx * sxy - sxx * sy;
  const double determinant = n * c00 + sx * c01 + sy * c02;
  if (determinant < 1e-3 * n * n * n) return false;
  const double c11 = n * syy - sy * sy, c12 = sx * sy - n * sxy, c22 = n * sxx - sx * sx;
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& r = right[k];
    std::array<float, 3>& a = k == 0 ? field.x : field.y;
    a = {static_cast<float>((c00 * r[0] + c01 * r[1] + c02 * r[2]) / determinant),
         static_cast<float>((c01 * r[0] + c11 * r[1] + c12 * r[2]) / determinant),
         static_cast<float>((c02 * r[0] + c12 * r[1] + c22 * r[2]) / determinant)};
  }
  return true;
}

bool was_inside(int block, const MotionVector& v) {
  const float x = static_cast<float>(block % kBlocks * kBlockCells) - v.x;
  const float y = static_cast<float>(block / kBlocks * kBlockCells) - v.y;
  constexpr float kLast = kLumaSide - kBlockCells + 0.5f;
  return x >= -0.5f && y >= -0.5f && x <= kLast && y <= kLast;
}

float distance(const MotionVector& a, const MotionVector& b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}

}  // namespace

MotionSplit split_motion(const MotionField& motion, const SmallPicture& picture, double aspect) {
  const auto wide = static_cast<float>(aspect);
  const float diagonal = std::hypot(wide, 1.f) * kLumaSide;
  const auto length = [&](float x, float y) { return std::hypot(x * wide, y) / diagonal; };
  const auto moved = [](const MotionVector& v) { return v.x != 0 || v.y != 0; };
  if (std::none_of(motion.vectors.begin(), motion.vectors.end(), moved)) return {};
  const Blocks detail = blocks_with_detail(picture);
  const auto blocks = std::count(detail.begin(), detail.end(), true);
  AffineField camera;
  Blocks follows{};
  bool known = blocks >= kFewBlocks;
  if (known) {
    camera.x[0] = middle_of(motion, detail, &MotionVector::x);
    camera.y[0] = middle_of(motion, detail, &MotionVector::y);
    for (int round = 0; round < kFitRounds && known; ++round) {
      // Allow large errors first, because at the edges a zoom is far from the shift of the middle.
      const float error = kError * static_cast<float>(kFitRounds - round);
      for (int b = 0; b < kAllBlocks; ++b) {
        const auto i = static_cast<std::size_t>(b);
        follows[i] = detail[i] && distance(motion.vectors[i], camera.at(b)) <= error;
      }
      const auto count = std::count(follows.begin(), follows.end(), true);
      const float least = kShareThatFollows * static_cast<float>(round + 1) / kFitRounds;
      known = static_cast<float>(count) >= least * static_cast<float>(blocks) &&
              fit_field(motion, follows, camera);
    }
  }
  // Camera motion below the error of vectors counts as rest.
  float farthest = 0;
  for (int b = 0; b < kAllBlocks && known; ++b)
    farthest = std::max(farthest, distance(camera.at(b), {}));
  const bool rests = !known || farthest < kError / 2;
  MotionSplit split;
  for (int b = 0; b < kAllBlocks; ++b) {
    const MotionVector v = motion.vectors[static_cast<std::size_t>(b)];
    if (rests) {
      split.object += length(v.x, v.y);
      continue;
    }
    const MotionVector c = camera.at(b);
    split.camera += length(c.x, c.y);
    if (detail[static_cast<std::size_t>(b)] && was_inside(b, c) && distance(v, c) > kError)
      split.object += length(v.x - c.x, v.y - c.y);
  }
  split.camera /= kAllBlocks, split.object /= kAllBlocks;
  return split;
}

}  // namespace vfm::curate
