// A made work of three stages on two kinds of nodes: what a part takes, the best that nodes could
// do, and what arrays of jobs do. Times are in seconds before they are scaled.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <random>
#include <vector>

namespace vfm::unlike {

constexpr int kStages = 3, kKinds = 2;
constexpr std::array<const char*, kStages> kTools{"clip", "caption", "embed"};
constexpr std::array<const char*, kKinds> kKindNames{"A", "B"};

struct Work {
  std::array<std::array<double, kStages>, kKinds> item_seconds{{{1, 4, 20}, {1, 4, 2}}};
  int parts = 2000, items = 100;  // items of a part
  int nodes = 8;                  // of each kind
  double slower = 1;              // factor of the captions of the second half of parts
};

/// Returns the sum of the items of a part, whose mean is 1: lognormal, with a deviation of a third.
inline double drawn_items(const Work& work, int stage, int part) {
  constexpr double kDeviation = 1.0 / 3;
  std::mt19937_64 engine(static_cast<std::uint64_t>(part) * kStages +
                         static_cast<std::uint64_t>(stage));
  std::lognormal_distribution<double> item(-kDeviation * kDeviation / 2, kDeviation);
  double sum = 0;
  for (int i = 0; i < work.items; ++i)
    sum += item(engine);
  return sum;
}

/// Returns the seconds of the part that is the `place`-th of its stage to begin.
inline double part_seconds(const Work& work, int kind, int stage, int part, int place) {
  const double factor = stage == 1 && 2 * place >= work.parts ? work.slower : 1;
  return factor * drawn_items(work, stage, part) *
         work.item_seconds[static_cast<std::size_t>(kind)][static_cast<std::size_t>(stage)];
}

/// Returns the least time in which the nodes could do all stages, if parts were as small as wanted
/// and no stage waited for another: the optimum of a linear program. With two kinds, the first does
/// the stages at which it is relatively best, up to a point, and the second does the others.
inline double best_split(const Work& work) {
  std::array<double, kStages> items{};
  for (int stage = 0; stage < kStages; ++stage)
    for (int part = 0; part < work.parts; ++part)
      items[static_cast<std::size_t>(stage)] +=
          part_seconds(work, 0, stage, part, part) /
          work.item_seconds[0][static_cast<std::size_t>(stage)];
  std::array<std::size_t, kStages> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto relative = [&](std::size_t stage) {
    return work.item_seconds[0][stage] / work.item_seconds[1][stage];
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return relative(a) < relative(b); });
  // The time of the first kind grows with the point, and that of the second becomes less.
  double low = 0, high = std::accumulate(items.begin(), items.end(), 0.0) * 1000;
  for (int i = 0; i < 100; ++i) {
    const double time = (low + high) / 2;
    double first = time * work.nodes, second = 0;
    for (const std::size_t stage : order) {
      const double of_first = std::min(items[stage], first / work.item_seconds[0][stage]);
      first -= of_first * work.item_seconds[0][stage];
      second += (items[stage] - of_first) * work.item_seconds[1][stage];
    }
    (second <= time * work.nodes ? high : low) = time;
  }
  return high;
}

/// Returns the time of one array of jobs for each stage, after the array before. A node that is
/// free gets the next task, whatever its kind.
inline double array_seconds(const Work& work) {
  double begin = 0;
  for (int stage = 0; stage < kStages; ++stage) {
    using Free = std::pair<double, int>;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> nodes;
    for (int node = 0; node < kKinds * work.nodes; ++node)
      nodes.emplace(begin, node / work.nodes);
    for (int part = 0; part < work.parts; ++part) {
      const auto [time, kind] = nodes.top();
      nodes.pop();
      nodes.emplace(time + part_seconds(work, kind, stage, part, part), kind);
    }
    for (; !nodes.empty(); nodes.pop())
      begin = std::max(begin, nodes.top().first);
  }
  return begin;
}

}  // namespace vfm::unlike
