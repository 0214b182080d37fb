// SPDX-License-Identifier: Apache-2.0
#include "train/data/reading_parts.h"

#include <algorithm>
#include <cstdlib>

namespace vfm::train {
namespace {

constexpr std::int64_t kNear = 12;  // a cut moves by this part of a rank's share at most

}  // namespace

std::vector<std::vector<ReadingPart>> share_reading(std::span<const std::int64_t> bytes, int ranks,
                                                    bool pieces) {
  std::vector<std::int64_t> ends = {0};  // boundaries between samples
  for (const std::int64_t one : bytes)
    ends.push_back(ends.back() + one);
  const std::int64_t all = ends.back(), near = all / (kNear * ranks);
  const auto cut = [&](int rank) {
    const std::int64_t even = all * rank / ranks;
    const auto next = std::ranges::lower_bound(ends, even);
    if (next == ends.begin()) return even;
    const std::int64_t before = *(next - 1);
    const std::int64_t nearest = *next - even <= even - before ? *next : before;
    return !pieces || std::abs(nearest - even) <= near ? nearest : even;
  };
  std::vector<std::vector<ReadingPart>> parts(static_cast<std::size_t>(ranks));
  std::size_t sample = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t begin = cut(rank), end = cut(rank + 1);
    for (; sample < bytes.size() && ends[sample] < end; ++sample) {
      const std::int64_t first = ends[sample];
      parts[static_cast<std::size_t>(rank)].push_back(
          {sample, std::max(begin, first) - first, std::min(end, ends[sample + 1]) - first});
      if (ends[sample + 1] > end) break;  // the next rank has the rest of it
    }
  }
  return parts;
}

}  // namespace vfm::train
