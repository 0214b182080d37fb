// SPDX-License-Identifier: Apache-2.0
#include "clip/unique/duplicate_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace vfm::clip {
namespace {

constexpr double kEdge = 0.75;  // seconds at each end of a source, where changes are unknown

using TimeSpan = std::pair<double, double>;

double length_of_union(std::vector<TimeSpan> spans) {
  std::sort(spans.begin(), spans.end());
  double length = 0, until = 0;
  for (const auto& [begin, end] : spans) {
    length += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return length;
}

/// The share of each source that another source shows.
class Coverage {
 public:
  Coverage(const std::vector<ComparedSource>& sources,
           const std::vector<CommonStretch>& stretches) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<TimeSpan>> spans;
    for (const CommonStretch& s : stretches) {
      spans[{s.first, s.second}].emplace_back(s.first_begin, s.first_end);
      spans[{s.second, s.first}].emplace_back(s.second_begin, s.second_end);
    }
    for (const auto& [pair, of_pair] : spans)
      shares_[pair.first].emplace_back(pair.second, share_of(sources[pair.first].seconds, of_pair));
  }

  /// Returns pairs of another source and the share of `source` that it shows.
  const std::vector<std::pair<std::size_t, double>>& of(std::size_t source) const {
    static const std::vector<std::pair<std::size_t, double>> none;
    const auto found = shares_.find(source);
    return found == shares_.end() ? none : found->second;
  }

 private:
  static double share_of(double seconds, std::vector<TimeSpan> spans) {
    for (auto& [begin, end] : spans) {
      if (begin < kEdge) begin = 0;
      if (end > seconds - kEdge) end = seconds;
    }
    return seconds > 0 ? std::min(1.0, length_of_union(std::move(spans)) / seconds) : 0;
  }

  std::unordered_map<std::size_t, std::vector<std::pair<std::size_t, double>>> shares_;
};

/// Disjoint sets that can be joined. The smallest member names a set.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t of(std::size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = of(a), b = of(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

/// Sorts the members of a group, with the source to keep first.
void sort_group(const std::vector<ComparedSource>& sources, std::vector<std::size_t>& members) {
  std::sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].seconds != sources[b].seconds ? sources[a].seconds > sources[b].seconds
                                                    : a < b;
  });
  const auto by_picture = [&](std::size_t a, std::size_t b) {
    const ComparedSource &x = sources[a], &y = sources[b];
    if (x.pixels != y.pixels) return x.pixels > y.pixels;
    if (x.bytes != y.bytes) return x.bytes > y.bytes;
    return x.path != y.path ? x.path < y.path : a < b;
  };
  for (std::size_t from = 0; from < members.size();) {
    const double longest = sources[members[from]].seconds;
    const double least = longest - std::max(0.5, 0.01 * longest);
    std::size_t to = from;
    while (to < members.size() && sources[members[to]].seconds >= least)
      ++to;
    std::sort(members.begin() + static_cast<std::ptrdiff_t>(from),
              members.begin() + static_cast<std::ptrdiff_t>(to), by_picture);
    from = to;
  }
}

/// Leaves out each source of the sorted group that an earlier, kept source shows.
void choose_in_group(const std::vector<std::size_t>& members, const Coverage& coverage,
                     const std::vector<std::size_t>& first_of, double share,
                     std::vector<SourceChoice>& choices) {
  std::unordered_map<std::size_t, std::size_t> kept;  // first with these bytes -> keeper
  for (const std::size_t source : members) {
    const std::size_t bytes = first_of[source];
    SourceChoice& choice = choices[source];
    if (const auto same = kept.find(bytes); same != kept.end()) {
      choice.keeper = same->second;
      choice.exact = true;
      continue;
    }
    for (const auto& [other, covered] : coverage.of(bytes)) {
      const auto keeper = kept.find(other);
      if (keeper == kept.end() || covered < share || covered <= choice.covered) continue;
      choice.keeper = keeper->second;
      choice.covered = covered;
    }
    if (!choice.keeper) kept.emplace(bytes, source);
  }
}

}  // namespace

CommonStretch exchanged(const CommonStretch& s) {
  const double width = s.crop.right - s.crop.left, height = s.crop.bottom - s.crop.top;
  return {s.second,
          s.first,
          s.second_begin,
          s.second_end,
          s.first_begin,
          s.first_end,
          s.score,
          {-s.crop.left / width, (1 - s.crop.left) / width, -s.crop.top / height,
           (1 - s.crop.top) / height}};
}

std::vector<CommonStretch> without_repeats(std::vector<CommonStretch> stretches) {
  const auto pair_of = [](const CommonStretch& s) { return std::tuple(s.first, s.second); };
  const auto when = [](const CommonStretch& s) {
    return std::tuple(s.first_begin, s.first_end, s.second_begin, s.second_end);
  };
  std::sort(stretches.begin(), stretches.end(), [&](const auto& a, const auto& b) {
    return std::tuple(pair_of(a), -a.score, when(a)) < std::tuple(pair_of(b), -b.score, when(b));
  });
  const auto same = [](const CommonStretch& a, const CommonStretch& b) {
    const double both = std::min(a.first_end, b.first_end) - std::max(a.first_begin, b.first_begin);
    const double shorter = std::min(a.first_end - a.first_begin, b.first_end - b.first_begin);
    const double apart = (a.first_begin - a.second_begin) - (b.first_begin - b.second_begin);
    return both >= 0.5 * shorter && std::abs(apart) < 1;
  };
  std::vector<CommonStretch> kept;
  std::size_t begin = 0;  // of the pair's stretches in `kept`
  for (const CommonStretch& s : stretches) {
    if (kept.empty() || pair_of(kept.back()) != pair_of(s)) begin = kept.size();
    if (std::none_of(kept.begin() + static_cast<std::ptrdiff_t>(begin), kept.end(),
                     [&](const CommonStretch& other) { return same(other, s); }))
      kept.push_back(s);
  }
  std::sort(kept.begin(), kept.end(), [&](const auto& a, const auto& b) {
    return std::tuple(pair_of(a), when(a)) < std::tuple(pair_of(b), when(b));
  });
  return kept;
}

std::vector<SourceChoice> choose_sources(const std::vector<ComparedSource>& sources,
                                         const std::vector<CommonStretch>& stretches,
                                         double share) {
  std::unordered_map<std::string, std::size_t> first_with;
  std::vector<std::size_t> first_of(sources.size());
  Sets sets(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    first_of[i] = first_with.emplace(sources[i].hash, i).first->second;
    sets.join(first_of[i], i);
  }
  const Coverage coverage(sources, stretches);
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (const auto& [other, covered] : coverage.of(i))
      if (covered >= share) sets.join(i, other);

  std::vector<std::vector<std::size_t>> members(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    members[sets.of(i)].push_back(i);
  std::vector<SourceChoice> choices(sources.size());
  std::size_t groups = 0;
  for (std::vector<std::size_t>& group : members) {
    if (group.size() < 2) continue;
    for (const std::size_t i : group)
      choices[i].group = groups;
    ++groups;
    sort_group(sources, group);
    choose_in_group(group, coverage, first_of, share, choices);
  }
  return choices;
}

}  // namespace vfm::clip
