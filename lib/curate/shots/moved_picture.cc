// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/moved_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace vfm::curate {
namespace {

constexpr int kLines = kChromaSide;
using Line = std::array<std::uint8_t, 3 * kChromaSide>;
using Costs = std::array<std::array<std::int32_t, kLines>, kLines>;  // [line now][other line]

std::int32_t apart(const Line& a, const Line& b) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(int{a[i]} - int{b[i]});
  return sum;
}

Costs compare(const PictureLines& now, const PictureLines& other) {
  Costs out;
  for (int i = 0; i < kLines; ++i)
    for (int k = 0; k < kLines; ++k)
      out[i][k] = apart(now.line[i], other.line[k]);
  return out;
}

/// Returns the lower cost of the two lines next to `at`.
std::int32_t about(const std::array<std::int32_t, kLines>& costs, float at) {
  const int low = std::clamp(static_cast<int>(std::floor(at)), 0, kLines - 1);
  return std::min(costs[low], costs[std::min(low + 1, kLines - 1)]);
}

std::int64_t sum_of(const Costs& costs) {
  std::int64_t sum = 0;
  for (const auto& row : costs)
    for (const std::int32_t cost : row)
      sum += cost;
  return sum;
}

}  // namespace

PictureLines columns_of(const SmallPicture& p) {
  std::array<std::uint8_t, kChromaCells> luma;
  halve_luma(p, luma);
  PictureLines out;
  for (int y = 0; y < kLines; ++y) {
    for (int x = 0; x < kLines; ++x) {
      const int cell = y * kLines + x;
      out.line[x][y] = luma[cell];
      out.line[x][kLines + y] = p.u[cell];
      out.line[x][2 * kLines + y] = p.v[cell];
    }
  }
  return out;
}

PictureLines rows_of(const SmallPicture& p) {
  std::array<std::uint8_t, kChromaCells> luma;
  halve_luma(p, luma);
  PictureLines out;
  for (int y = 0; y < kLines; ++y) {
    std::copy_n(luma.begin() + y * kLines, kLines, out.line[y].begin());
    std::copy_n(p.u.begin() + y * kLines, kLines, out.line[y].begin() + kLines);
    std::copy_n(p.v.begin() + y * kLines, kLines, out.line[y].begin() + 2 * kLines);
  }
  return out;
}

std::array<MovedFit, kMoves> moved_fits(const PictureLines& before, const PictureLines& now,
                                        const PictureLines& after) {
  const Costs old_costs = compare(now, before), new_costs = compare(now, after);
  const float unrelated =
      static_cast<float>(sum_of(old_costs) + sum_of(new_costs)) / (2 * kLines) + 1;
  std::array<MovedFit, kMoves> out;
  const auto keep = [&](Move move, int way, float share, std::int32_t cost) {
    MovedFit& best = out[static_cast<std::size_t>(move)];
    const float misfit = static_cast<float>(cost) / unrelated;
    if (misfit < best.misfit) best = {way, share, misfit};
  };
  for (int gone = 1; gone < kLines; ++gone) {
    const float share = static_cast<float>(gone) / kLines;
    for (const int way : {1, -1}) {
      std::int32_t push = 0, cover = 0, reveal = 0;
      for (int i = 0; i < kLines; ++i) {
        const int along = way > 0 ? i : kLines - 1 - i;  // 0 where the new picture enters
        const bool is_new = along < gone;
        const int moved = is_new ? i + way * (kLines - gone) : i - way * gone;
        const Costs& costs = is_new ? new_costs : old_costs;
        const std::int32_t by_moving = costs[i][moved], by_staying = costs[i][i];
        push += by_moving;
        cover += is_new ? by_moving : by_staying;
        reveal += is_new ? by_staying : by_moving;
      }
      keep(Move::push, way, share, push);
      keep(Move::cover, way, share, cover);
      keep(Move::reveal, way, share, reveal);
    }
    std::int32_t squeeze = 0;
    constexpr float kMiddle = (kLines - 1) / 2.f;
    for (int i = 0; i < kLines; ++i) {
      const float from = kMiddle + (static_cast<float>(i) - kMiddle) / (1 - share);
      const bool is_new = from < -0.5f || from > kLines - 0.5f;
      squeeze += is_new ? new_costs[i][i] : about(old_costs[i], std::max(from, 0.f));
    }
    keep(Move::squeeze, 0, share, squeeze);
  }
  return out;
}

float seam_of(const PictureLines& before, const PictureLines& after, int way, int near) {
  const Costs costs = compare(before, after);
  // If a camera moves by a little less or more than one picture, some lines are repeated or
  // skipped. Then lines near the edge are alike.
  const int last = kLines - 1;
  const auto cost = [&](int low, int high) {
    return way > 0 ? costs[low][high] : costs[high][low];
  };
  std::int32_t seam = cost(0, last);
  for (int k = 1; k <= near; ++k)
    seam = std::min({seam, cost(k, last), cost(0, last - k)});
  const auto step = [](const PictureLines& p, int i) { return apart(p.line[i], p.line[i + 1]); };
  std::int32_t all = 0;
  for (int i = 0; i < last; ++i)
    all += step(before, i) + step(after, i);
  const std::int32_t here = way > 0 ? std::max(step(before, 0), step(after, last - 1))
                                    : std::max(step(before, last - 1), step(after, 0));
  const float fine =
      std::max(3 * static_cast<float>(all) / (2 * last), 2 * static_cast<float>(here));
  const float unrelated = static_cast<float>(sum_of(costs)) / (kLines * kLines);
  return static_cast<float>(seam) / (std::max(unrelated, fine) + 1);
}

}  // namespace vfm::curate
