// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/parts_between.h"

#include <algorithm>

namespace vfm::curate {
namespace {

constexpr int kSide = 8;
constexpr int kU = 256, kV = 320;  // where u and v of a coarse picture begin
constexpr float kChroma = 4;       // a cell covers as much as four luma cells

float sum_of(const std::array<float, kParts>& values) {
  std::array<float, kSide> lanes{};  // fixed order of additions, and the loop vectorises
  for (int i = 0; i < kParts; i += kSide)
    for (int k = 0; k < kSide; ++k)
      lanes[k] += values[i + k];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace

PartsBetween parts_between(const CoarsePicture& before, const CoarsePicture& now,
                           const CoarsePicture& after) {
  PartsBetween out;
  alignas(32) std::array<float, kParts> along{}, away{}, left_over;
  out.weight.fill(0);
  const auto add = [&](int part, int cell, float scale) {
    const auto way = static_cast<float>(int{after[cell]} - int{before[cell]});
    const auto gone = static_cast<float>(int{now[cell]} - int{before[cell]});
    out.weight[part] += scale * way * way;
    along[part] += scale * gone * way;
    away[part] += scale * gone * gone;
  };
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int part = y * kSide + x, luma = 2 * y * kWipeSteps + 2 * x;
      add(part, luma, 1), add(part, luma + 1, 1);
      add(part, luma + kWipeSteps, 1), add(part, luma + kWipeSteps + 1, 1);
      add(part, kU + part, kChroma), add(part, kV + part, kChroma);
    }
  }
  std::array<float, kParts> gone;
  for (int i = 0; i < kParts; ++i) {
    const float share = std::clamp(along[i] / std::max(out.weight[i], 1.f), 0.f, 1.f);
    out.share[i] = share;
    gone[i] = share * out.weight[i];
    left_over[i] = away[i] - 2 * share * along[i] + share * gone[i];
  }
  const float all = std::max(sum_of(out.weight), 1.f);
  out.misfit = sum_of(left_over) / all;
  out.progress = sum_of(gone) / all;
  return out;
}

float parts_going_back(const PartsBetween& earlier, const PartsBetween& later) {
  std::array<float, kParts> lost;
  for (int i = 0; i < kParts; ++i)
    lost[i] = later.weight[i] * std::max(0.f, earlier.share[i] - later.share[i]);
  return sum_of(lost) / std::max(sum_of(later.weight), 1.f);
}

}  // namespace vfm::curate
