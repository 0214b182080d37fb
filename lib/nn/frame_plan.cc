// SPDX-License-Identifier: Apache-2.0
#include "nn/frame_plan.h"

#include <algorithm>
#include <numeric>

#include "nn/placement.h"

namespace vfm::nn {
namespace {

using Numbers = std::vector<std::int64_t>;
using View = std::span<const std::int64_t>;

// The last end of a part that begins at `begin` and weighs `most` at most.
std::int64_t furthest_end(View until, std::int64_t begin, std::int64_t most) {
  const std::int64_t limit = until[static_cast<std::size_t>(begin)] + most;
  return std::upper_bound(until.begin() + begin, until.end(), limit) - until.begin() - 1;
}

// The first beginning of a part that ends at `end` and weighs `most` at most.
std::int64_t first_begin(View until, std::int64_t end, std::int64_t most) {
  const std::int64_t limit = until[static_cast<std::size_t>(end)] - most;
  return std::lower_bound(until.begin(), until.begin() + end, limit) - until.begin();
}

// Whether parts that weigh `limit` at most, their bases counted, hold all things.
bool holds_all(View until, View base, std::int64_t limit) {
  std::int64_t at = 0;
  for (const std::int64_t fixed : base)
    at = furthest_end(until, at, limit - fixed);
  return at == std::ssize(until) - 1;
}

// The least such limit.
std::int64_t least_limit(View until, View base) {
  std::int64_t low = *std::ranges::max_element(base);
  std::int64_t high = low + until.back();  // one part holds all
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (holds_all(until, base, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Beginnings of `count` things in a row, and their end: what until[] is.
void append(Numbers& until, std::int64_t count, std::int64_t weight) {
  for (std::int64_t i = 0; i < count; ++i)
    until.push_back(until.back() + weight);
}

// Of things begin..end-1 in a row, `count` of one sample from `first` on.
GridRange range_of(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t count) {
  return {std::clamp(begin - first, std::int64_t{0}, count),
          std::clamp(end - first, std::int64_t{0}, count)};
}

std::int64_t places_of(const ops::TokenGrid& grid) {
  return std::int64_t{grid.height} * grid.width;
}

std::int64_t tokens_of(const ops::TokenGrid& grid) {
  return grid.frames * places_of(grid);
}

}  // namespace

Numbers even_ends(View until, View base, bool each_some) {
  const std::int64_t things = std::ssize(until) - 1, parts = std::ssize(base);
  const bool some = each_some && things >= parts;
  const std::int64_t limit = least_limit(until, base);
  // The first end of each part from which on the parts after it hold the rest.
  Numbers first_end(base.size(), things);
  for (auto part = base.size() - 1; part > 0; --part)
    first_end[part - 1] = first_begin(until, first_end[part], limit - base[part]);
  Numbers ends;
  std::int64_t begin = 0;
  std::int64_t bases = std::accumulate(base.begin(), base.end(), std::int64_t{0});
  for (std::size_t part = 0; part < base.size(); ++part) {
    const std::int64_t left = parts - static_cast<std::int64_t>(part);
    std::int64_t low = std::max(begin, first_end[part]);
    std::int64_t high = furthest_end(until, begin, limit - base[part]);
    if (some) {
      low = std::max(low, begin + 1);
      high = std::min(high, things - left + 1);
    } else if (each_some) {
      low = high = std::min(begin + 1, things);
    }
    const std::int64_t done = until[static_cast<std::size_t>(begin)];
    const std::int64_t mean = (until.back() - done + bases) / left;
    const std::int64_t wanted = done + std::max(std::int64_t{0}, mean - base[part]);
    std::int64_t end = furthest_end(until, begin, wanted - done);
    if (end < things && until[static_cast<std::size_t>(end) + 1] - wanted <
                            wanted - until[static_cast<std::size_t>(end)])
      ++end;
    begin = std::clamp(end, low, high);
    ends.push_back(begin);
    bases -= base[part];
  }
  return ends;
}

// Column by column of the sections below each other, the first of which may be one longer.
std::int64_t numbered_place(std::int64_t number, std::int64_t places, int sections) {
  const std::int64_t each = places / sections * sections;
  const auto section = static_cast<int>(number < each ? number % sections : number - each);
  return nn::share(places, section, sections) + std::min(number, each) / sections;
}

FramePlan::FramePlan(std::span<const ops::TokenGrid> samples, int ranks, const FrameWork& work,
                     int parts)
    : grids(samples.begin(), samples.end()),
      sections(parts),
      frames(static_cast<std::size_t>(ranks)),
      places(static_cast<std::size_t>(ranks)) {
  Numbers until{0};
  for (const ops::TokenGrid& g : grids) {
    const std::int64_t keys = places_of(g) + (work.queries_stay ? tokens_of(g) : 0);
    append(until, g.frames, places_of(g) * (work.in_frames + keys));
  }
  Numbers base(frames.size(), 0);
  const Numbers ends = even_ends(until, base, true);
  std::int64_t first = 0;
  for (const ops::TokenGrid& g : grids) {
    for (std::size_t r = 0; r < frames.size(); ++r)
      frames[r].push_back(range_of(r == 0 ? 0 : ends[r - 1], ends[r], first, g.frames));
    first += g.frames;
  }
  // Samples that stay, and the places of the others in a row.
  until.assign(1, 0);
  std::vector<bool> stays;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const ops::TokenGrid& g = grids[i];
    const std::int64_t place = g.frames * (work.in_pixels + g.frames);
    stays.push_back(false);
    for (std::size_t r = 0; r < frames.size(); ++r) {
      const bool whole = frames[r][i].count() == g.frames;
      places[r].push_back({0, whole ? places_of(g) : 0});
      if (!whole) continue;
      stays.back() = true;
      base[r] += places_of(g) * place;
    }
    if (!stays.back()) append(until, places_of(g), place);
  }
  const Numbers dealt = even_ends(until, base, false);
  first = 0;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    if (stays[i]) continue;
    for (std::size_t r = 0; r < places.size(); ++r)
      places[r][i] = range_of(r == 0 ? 0 : dealt[r - 1], dealt[r], first, places_of(grids[i]));
    first += places_of(grids[i]);
  }
}

std::vector<ops::RowRange> FramePlan::rows(int rank) const {
  std::vector<ops::RowRange> ranges;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const GridRange& of_sample = frames[static_cast<std::size_t>(rank)][i];
    ranges.push_back({first + of_sample.begin * places_of(grids[i]),
                      first + of_sample.end * places_of(grids[i])});
    first += tokens_of(grids[i]);
  }
  return ranges;
}

Numbers FramePlan::pixel_rows(int rank) const {
  Numbers rows;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const GridRange& of_sample = places[static_cast<std::size_t>(rank)][i];
    const std::int64_t all = places_of(grids[i]);
    for (std::int64_t number = of_sample.begin; number < of_sample.end; ++number)
      for (std::int64_t frame = 0; frame < grids[i].frames; ++frame)
        rows.push_back(first + frame * all + numbered_place(number, all, sections));
    first += tokens_of(grids[i]);
  }
  return rows;
}

std::int64_t FramePlan::tokens_of_frames(int rank) const {
  std::int64_t tokens = 0;
  for (int to = 0; to < ranks(); ++to)
    tokens += moved(rank, to);
  return tokens;
}

std::int64_t FramePlan::tokens_of_places(int rank) const {
  std::int64_t tokens = 0;
  for (int from = 0; from < ranks(); ++from)
    tokens += moved(from, rank);
  return tokens;
}

std::int64_t FramePlan::moved(int from, int to) const {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < grids.size(); ++i)
    tokens += frames[static_cast<std::size_t>(from)][i].count() *
              places[static_cast<std::size_t>(to)][i].count();
  return tokens;
}

}  // namespace vfm::nn
