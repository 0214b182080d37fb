// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/wipe.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>

namespace vfm::curate {

CoarsePicture coarse_picture(const SmallPicture& p) {
  CoarsePicture out;
  std::size_t to = 0;
  const auto shrink = [&](const std::uint8_t* cells, int side) {
    for (int y = 0; y < side; y += 4) {
      for (int x = 0; x < side; x += 4) {
        int sum = 0;
        for (int i = 0; i < 4; ++i)
          for (int k = 0; k < 4; ++k)
            sum += cells[(y + i) * side + x + k];
        out[to++] = static_cast<std::uint8_t>(sum / 16);
      }
    }
  };
  shrink(p.y.data(), kLumaSide);
  shrink(p.u.data(), kChromaSide);
  shrink(p.v.data(), kChromaSide);
  return out;
}

WipeFrame wipe_frame(const CoarsePicture& before, const CoarsePicture& now,
                     const CoarsePicture& after) {
  constexpr std::int32_t kOther = 16;  // grey levels, luma plus chroma
  alignas(32) std::array<std::int32_t, 384> old_away, new_away, way;
  for (std::size_t i = 0; i < now.size(); ++i) {
    old_away[i] = std::abs(int{now[i]} - int{before[i]});
    new_away[i] = std::abs(int{now[i]} - int{after[i]});
    way[i] = std::abs(int{after[i]} - int{before[i]});
  }
  std::array<std::int32_t, kWipeSteps> columns{}, rows{}, column_votes{}, row_votes{};
  std::int32_t sum = 0, apart = 0, changed = 0;
  for (int y = 0; y < kWipeSteps; ++y) {
    for (int x = 0; x < kWipeSteps; ++x) {
      const int luma = y * kWipeSteps + x, u = 256 + y / 2 * 8 + x / 2, v = u + 64;
      const std::int32_t from_old = old_away[luma] + old_away[u] + old_away[v];
      const std::int32_t from_new = new_away[luma] + new_away[u] + new_away[v];
      const std::int32_t is_new = from_old - from_new;
      columns[x] += is_new;
      rows[y] += is_new;
      sum += std::abs(is_new);
      apart += std::max(from_old, from_new);
      const std::int32_t differs = way[luma] + way[u] + way[v] > kOther;
      changed += differs;
      const std::int32_t vote = is_new > 0 ? differs : -differs;
      column_votes[x] += vote;
      row_votes[y] += vote;
    }
  }
  WipeFrame out;
  out.clearness = static_cast<float>(sum) / static_cast<float>(std::max(apart, 1));
  out.changed = static_cast<float>(changed) / (kWipeSteps * kWipeSteps);
  const auto fill = [](auto& agreement, const auto& lines, int most, WipeWay forth, WipeWay back) {
    std::int32_t behind = 0, all = 0;
    for (const std::int32_t line : lines)
      all += line;
    const float scale = 1 / static_cast<float>(std::max(most, 1));
    for (int k = 0; k <= kWipeSteps; ++k) {
      const float agrees = scale * static_cast<float>(2 * behind - all);
      agreement[static_cast<std::size_t>(forth)][k] = agrees;
      agreement[static_cast<std::size_t>(back)][kWipeSteps - k] = -agrees;
      if (k < kWipeSteps) behind += lines[k];
    }
  };
  fill(out.agreement, columns, sum, WipeWay::right, WipeWay::left);
  fill(out.agreement, rows, sum, WipeWay::down, WipeWay::up);
  fill(out.votes, column_votes, changed, WipeWay::right, WipeWay::left);
  fill(out.votes, row_votes, changed, WipeWay::down, WipeWay::up);
  return out;
}

namespace {

float best_about(const std::array<float, kWipeSteps + 1>& agreement, float share) {
  constexpr float kUneven = 0.15f;  // of the way, because edges may move unevenly
  const int from = std::max(0, static_cast<int>(std::ceil(kWipeSteps * (share - kUneven))));
  const int to = std::min(kWipeSteps, static_cast<int>(kWipeSteps * (share + kUneven)));
  return *std::max_element(agreement.begin() + from, agreement.begin() + to + 1);
}

}  // namespace

float wipe_agreement(const WipeFrame& frame, WipeWay way, float share) {
  return best_about(frame.agreement[static_cast<std::size_t>(way)], share);
}

float wipe_votes(const WipeFrame& frame, WipeWay way, float share) {
  return best_about(frame.votes[static_cast<std::size_t>(way)], share);
}

WipeEdge wipe_edge(const WipeFrame& frame, float share) {
  WipeEdge best{WipeWay::right, -1};
  for (const WipeWay way : {WipeWay::right, WipeWay::left, WipeWay::down, WipeWay::up}) {
    const float agreement = wipe_agreement(frame, way, share);
    if (agreement > best.agreement) best = {way, agreement};
  }
  return best;
}

bool wipe_is_pan(const CoarsePicture& before, const CoarsePicture& now, const CoarsePicture& after,
                 WipeWay way, float share) {
  constexpr int kAround = 3;  // cells by which the edge may be off
  // Returns the luma of the cell at `along` in direction `way`, and `across`.
  const auto cell = [&](const CoarsePicture& p, int along, int across) {
    const bool reverse = way == WipeWay::left || way == WipeWay::up;
    const int i = reverse ? kWipeSteps - 1 - along : along;
    const bool flat = way == WipeWay::left || way == WipeWay::right;
    return int{flat ? p[across * kWipeSteps + i] : p[i * kWipeSteps + across]};
  };
  const auto cost = [&](int edge, int old_shift, int new_shift) {
    int sum = 0;
    for (int along = 0; along < kWipeSteps; ++along)
      for (int across = 0; across < kWipeSteps; ++across)
        sum += std::abs(cell(now, along, across) - (along >= edge
                                                        ? cell(before, along - old_shift, across)
                                                        : cell(after, along + new_shift, across)));
    return sum;
  };
  const int middle = static_cast<int>(std::lround(share * kWipeSteps));
  int moved = INT_MAX, held = INT_MAX;  // each with its best edge
  for (int edge = std::max(1, middle - kAround); edge <= std::min(15, middle + kAround); ++edge) {
    moved = std::min(moved, cost(edge, edge, kWipeSteps - edge));
    held = std::min(held, cost(edge, 0, 0));
  }
  return 10 * moved < 11 * held;  // a wipe fits clearly better without a shift
}

}  // namespace vfm::curate
