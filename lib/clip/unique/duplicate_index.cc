// SPDX-License-Identifier: Apache-2.0
#include "clip/unique/duplicate_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/stop.h"

namespace vfm::clip {
namespace {

constexpr int kTableBits = 16;           // first bits of a code, which index first_of_
constexpr std::size_t kBlock = 64;       // moments that are searched together
constexpr std::size_t kLeastVotes = 3;   // minimum number of moments of a place
constexpr int kOffsets = 3;              // neighbouring offsets that count as one place
constexpr std::size_t kMostPlaces = 2;   // of one source in one block
constexpr std::size_t kBoxes = 16;       // groups of neighbouring crops
constexpr double kSamePlace = 4;         // maximum difference of one place's offsets
constexpr std::size_t kMostFound = 256;  // places of one source

/// Returns a bit for each box that has the crop `way`. Of the three crops of each edge, a box has
/// two neighbouring crops.
std::uint16_t boxes_of_way(std::size_t way) {
  std::array<std::size_t, 4> edges;
  for (std::size_t& edge : edges) {
    edge = way % 3;
    way /= 3;
  }
  std::uint16_t boxes = 0;
  for (std::size_t box = 0; box < kBoxes; ++box) {
    bool inside = true;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const std::size_t low = box >> i & 1U;
      inside = inside && (edges[i] == low || edges[i] == low + 1);
    }
    if (inside) boxes |= static_cast<std::uint16_t>(1U << box);
  }
  return boxes;
}

std::uint16_t boxes_of(std::size_t way) {
  static const std::array<std::uint16_t, curate::kCropWays> all = [] {
    std::array<std::uint16_t, curate::kCropWays> boxes;
    for (std::size_t i = 0; i < boxes.size(); ++i)
      boxes[i] = boxes_of_way(i);
    return boxes;
  }();
  return all[way];
}

}  // namespace

std::vector<IndexedMoment> indexed_moments(std::uint32_t source,
                                           std::span<const curate::SignaturePicture> pictures) {
  std::vector<IndexedMoment> moments;
  curate::ChangePicture change;
  for (std::size_t k = curate::kFirstMoment; k < curate::moments_end(pictures.size()); ++k) {
    curate::change_at(pictures, k, change);
    if (const auto code = curate::index_code(change))
      moments.push_back({*code, source, static_cast<std::uint32_t>(k)});
  }
  return moments;
}

/// A code that a searched moment and a moment of `source` share.
struct DuplicateIndex::Hit {
  std::uint32_t source;
  std::int32_t offset;   // moment of the source minus searched moment
  std::uint32_t moment;  // index of the searched moment in its block
  std::uint16_t way;
  std::uint16_t boxes;
  friend auto operator<=>(const Hit&, const Hit&) = default;
};

namespace {

/// Counts votes of hits in a sliding window of offsets.
class Votes {
 public:
  template <class Hit>
  void add(const Hit& hit) {
    for (std::size_t box = 0; box < kBoxes; ++box)
      if ((hit.boxes >> box & 1U) != 0 && counts_[box][hit.moment]++ == 0) ++moments_[box];
  }
  template <class Hit>
  void remove(const Hit& hit) {
    for (std::size_t box = 0; box < kBoxes; ++box)
      if ((hit.boxes >> box & 1U) != 0 && --counts_[box][hit.moment] == 0) --moments_[box];
  }
  std::pair<std::size_t, std::size_t> best() const {
    const auto most = std::max_element(moments_.begin(), moments_.end());
    return {static_cast<std::size_t>(most - moments_.begin()), *most};
  }

 private:
  std::array<std::array<std::uint32_t, kBlock>, kBoxes> counts_{};
  std::array<std::size_t, kBoxes> moments_{};
};

/// Returns the mean crop, mean offset and moments of the hits in a box.
template <class Hit>
curate::AlignmentStart start_of(std::span<const Hit> hits, std::size_t box, std::size_t block) {
  curate::AlignmentStart start{0, {0, 0, 0, 0}, SIZE_MAX, 0};
  double count = 0;
  for (const Hit& hit : hits) {
    if ((hit.boxes >> box & 1U) == 0) continue;
    const curate::CropWindow crop = curate::crop_of_way(hit.way);
    start.crop.left += crop.left;
    start.crop.right += crop.right;
    start.crop.top += crop.top;
    start.crop.bottom += crop.bottom;
    start.offset += hit.offset;
    start.from = std::min(start.from, block + hit.moment);
    start.to = std::max(start.to, block + hit.moment + 1);
    ++count;
  }
  for (double* sum :
       {&start.crop.left, &start.crop.right, &start.crop.top, &start.crop.bottom, &start.offset})
    *sum /= count;
  return start;
}

/// Adds the places with the most votes. `hits` are the hits of one source, sorted by offset.
template <class Hit>
void places_of_source(std::span<const Hit> hits, std::size_t block,
                      std::vector<LikelyPlace>& places) {
  struct Window {
    std::size_t votes, begin, end, box;
  };
  std::vector<Window> windows;
  Votes votes;
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < hits.size();) {
    const std::int32_t offset = hits[begin].offset;
    for (; end < hits.size() && hits[end].offset < offset + kOffsets; ++end)
      votes.add(hits[end]);
    const auto [box, count] = votes.best();
    if (count >= kLeastVotes) windows.push_back({count, begin, end, box});
    for (; begin < hits.size() && hits[begin].offset == offset; ++begin)
      votes.remove(hits[begin]);
  }
  std::stable_sort(windows.begin(), windows.end(),
                   [](const Window& a, const Window& b) { return a.votes > b.votes; });
  std::vector<Window> taken;
  for (const Window& window : windows) {
    if (taken.size() == kMostPlaces) break;
    if (std::any_of(taken.begin(), taken.end(), [&](const Window& other) {
          return std::abs(hits[other.begin].offset - hits[window.begin].offset) <= kSamePlace;
        }))
      continue;
    taken.push_back(window);
    places.push_back(
        {hits[0].source,
         start_of(hits.subspan(window.begin, window.end - window.begin), window.box, block),
         window.votes});
  }
}

/// Keeps each place once, with the votes of the best block.
void keep_best(std::vector<LikelyPlace>& places) {
  std::stable_sort(places.begin(), places.end(), [](const LikelyPlace& a, const LikelyPlace& b) {
    return a.source != b.source ? a.source < b.source : a.start.offset < b.start.offset;
  });
  std::vector<LikelyPlace> kept;
  for (const LikelyPlace& place : places) {
    if (!kept.empty() && kept.back().source == place.source &&
        place.start.offset - kept.back().start.offset <= kSamePlace) {
      if (place.votes > kept.back().votes) kept.back() = place;
    } else {
      kept.push_back(place);
    }
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const LikelyPlace& a, const LikelyPlace& b) { return a.votes > b.votes; });
  if (kept.size() > kMostFound) kept.resize(kMostFound);
  places = std::move(kept);
}

}  // namespace

void DuplicateIndex::add(const std::vector<IndexedMoment>& moments) {
  moments_.insert(moments_.end(), moments.begin(), moments.end());
}

void DuplicateIndex::finish() {
  std::sort(moments_.begin(), moments_.end());
  constexpr int kShift = curate::kCodeBits - kTableBits;
  first_of_.assign((std::size_t{1} << kTableBits) + 1, 0);
  for (const IndexedMoment& moment : moments_)
    ++first_of_[(moment.code >> kShift) + 1];
  for (std::size_t i = 1; i < first_of_.size(); ++i)
    first_of_[i] += first_of_[i - 1];
}

std::span<const IndexedMoment> DuplicateIndex::of_code(std::uint32_t code) const {
  const std::size_t part = code >> (curate::kCodeBits - kTableBits);
  const auto from = moments_.begin() + static_cast<std::ptrdiff_t>(first_of_[part]);
  const auto to = moments_.begin() + static_cast<std::ptrdiff_t>(first_of_[part + 1]);
  const auto less = [](const IndexedMoment& moment, std::uint32_t value) {
    return moment.code < value;
  };
  const auto begin = std::lower_bound(from, to, code, less);
  const auto end = std::lower_bound(begin, to, code + 1, less);
  return {begin, std::min(end, begin + std::min<std::ptrdiff_t>(end - begin, kMostOfCode))};
}

void DuplicateIndex::look_up(std::uint32_t source, const curate::LookupCodes& codes,
                             std::uint32_t moment, std::vector<Hit>& hits) const {
  const auto block_moment = static_cast<std::uint32_t>(moment % kBlock);
  for (std::size_t way = 0; way < curate::kCropWays; ++way)
    for (const std::uint32_t code : codes[way])
      for (const IndexedMoment& found : of_code(code))
        if (found.source != source)
          hits.push_back(
              {found.source,
               static_cast<std::int32_t>(found.moment) - static_cast<std::int32_t>(moment),
               block_moment, static_cast<std::uint16_t>(way), boxes_of(way)});
}

std::vector<LikelyPlace> DuplicateIndex::find(
    std::uint32_t source, std::span<const curate::SignaturePicture> pictures) const {
  std::vector<LikelyPlace> places;
  std::vector<Hit> hits;
  curate::ChangePicture change;
  curate::LookupCodes codes;
  const std::size_t end = curate::moments_end(pictures.size());
  for (std::size_t block = 0; block < end; block += kBlock) {
    check_stop();
    hits.clear();
    for (std::size_t k = std::max(block, curate::kFirstMoment); k < std::min(end, block + kBlock);
         ++k) {
      curate::change_at(pictures, k, change);
      if (curate::lookup_codes(change, codes))
        look_up(source, codes, static_cast<std::uint32_t>(k), hits);
    }
    std::sort(hits.begin(), hits.end());
    for (std::size_t from = 0; from < hits.size();) {
      std::size_t to = from;
      while (to < hits.size() && hits[to].source == hits[from].source)
        ++to;
      places_of_source(std::span<const Hit>(hits).subspan(from, to - from), block, places);
      from = to;
    }
    if (places.size() > 16 * kMostFound) keep_best(places);
  }
  keep_best(places);
  return places;
}

}  // namespace vfm::clip
