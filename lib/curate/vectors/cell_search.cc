// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/cell_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/stop.h"
#include "curate/vectors/sketch_store.h"

namespace vfm::curate {
namespace {

constexpr std::size_t kLookedAtOnce = 256;                     // vectors that a thread takes
constexpr std::size_t kCellsAtOnce = 16;                       // cells that a thread takes
constexpr std::size_t kLeastBlock = 1024, kMostBlock = 65536;  // vectors decided at once
constexpr std::size_t kMostPairs = std::size_t{1} << 22;       // passed pairs of a block
constexpr float kFloatSlack = 1e-4f;  // error of a product of unit vectors in floats

/// Slots of a vector of the block and a better vector. Their product in floats passes.
struct PassedPair {
  std::uint32_t item = 0, other = 0;
};
struct PassedPairs {
  std::vector<PassedPair> pairs;
  std::uint64_t decided = 0;  ///< Number of pairs whose sketches pass.
};
/// Thrown if more than kMostPairs pairs of a block pass.
struct TooMany {};

/// A cache of the unit vectors of a cell's visitors. A visitor is a vector that searches the cell.
class VisitorRows {
 public:
  VisitorRows(const SketchStore& store, std::size_t dim) : store_(store), dim_(dim) {}

  const float* row(std::size_t slot) {
    if (const auto found = places_.find(slot); found != places_.end())
      return &rows_[found->second * dim_];
    if ((places_.size() + 1) * dim_ * sizeof(float) > kMostBytes) {
      places_.clear();
      rows_.clear();
    }
    store_.read(store_.rank(slot), one_);
    rows_.insert(rows_.end(), one_.begin(), one_.end());
    return &rows_[places_.emplace(slot, places_.size()).first->second * dim_];
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  const SketchStore& store_;
  std::size_t dim_;
  std::unordered_map<std::size_t, std::size_t> places_;
  std::vector<float> rows_, one_;
};

class CellFinder {
 public:
  CellFinder(const CellSearch& search, share::Slots& slots)
      : search_(search),
        slots_(slots),
        n_(search.places.size()),
        width_(search.width),
        store_(search, slots),
        kept_(n_) {}

  CellCounts find(const std::function<void(const NearDuplicate&)>& found);

 private:
  void look();
  std::vector<PassedPair> compare(bool within);
  void compare_cell(std::size_t cell, bool within, PassedPairs& passed) const;
  void compare_rows(std::span<const std::uint32_t> tile, std::span<const PassedPair> near,
                    VisitorRows& rows, PassedPairs& passed) const;
  std::vector<NearDuplicate> decide(const std::vector<PassedPair>& pairs, bool all);
  std::vector<NearDuplicate> decide_block();

  const CellSearch& search_;
  share::Slots& slots_;
  std::size_t n_, width_;
  SketchStore store_;
  std::vector<bool> kept_;  // by slot
  // The current block: its ranks, its duplicates, the slots that search each cell, its counts.
  std::size_t begin_ = 0, end_ = 0;
  std::vector<bool> gone_;
  std::vector<std::size_t> visit_begins_;
  std::vector<std::uint32_t> visits_;
  CellCounts block_counts_, counts_;
};

/// Finds the cells that each vector of the block searches. Vectors without a direction search none.
void CellFinder::look() {
  struct Looked {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> visits;  // cell and slot
    std::uint64_t cut = 0;
  };
  const SketchCells::Reach reach{std::sqrt(2 - 2 * search_.threshold), search_.margin,
                                 search_.most};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> visits;
  in_portions<Looked>(
      slots_, end_ - begin_, kLookedAtOnce,
      [&](std::size_t first, std::size_t last) {
        Looked looked;
        std::vector<std::uint32_t> slots;
        for (std::size_t i = first; i < last; ++i)
          if (const std::size_t slot = store_.slot(begin_ + i); store_.in_a_cell(slot))
            slots.push_back(static_cast<std::uint32_t>(slot));
        for (std::size_t i = 0; i < slots.size(); i += 4) {
          const std::int16_t* four[4];
          for (std::size_t r = 0; r < 4; ++r)
            four[r] = store_.sketch(slots[std::min(i + r, slots.size() - 1)]);
          SketchCells::Near near[4];
          store_.cells().near(four, reach, near);
          for (std::size_t r = 0; r < 4 && i + r < slots.size(); ++r) {
            looked.cut += !near[r].all;
            for (const std::uint32_t cell : near[r].cells)
              looked.visits.emplace_back(cell, slots[i + r]);
          }
        }
        return looked;
      },
      [&](Looked& looked) {
        block_counts_.cut += looked.cut;
        visits.insert(visits.end(), looked.visits.begin(), looked.visits.end());
      });
  block_counts_.looked_at = visits.size();
  visit_begins_.assign(store_.cells().count() + 1, 0);
  for (const auto& [cell, slot] : visits)
    ++visit_begins_[cell + 1];
  std::partial_sum(visit_begins_.begin(), visit_begins_.end(), visit_begins_.begin());
  std::vector<std::size_t> next(visit_begins_.begin(), visit_begins_.end() - 1);
  visits_.resize(visits.size());
  for (const auto& [cell, slot] : visits)
    visits_[next[cell]++] = slot;
}

/// Compares a cell's visitors with vectors kept before the block, or with the block if `within`.
void CellFinder::compare_cell(std::size_t cell, bool within, PassedPairs& passed) const {
  std::vector<std::uint32_t> visitors, members;
  for (std::size_t i = visit_begins_[cell]; i < visit_begins_[cell + 1]; ++i)
    if (!within || !gone_[store_.rank(visits_[i]) - begin_]) visitors.push_back(visits_[i]);
  if (visitors.empty()) return;
  for (std::size_t slot = store_.begin(cell); slot < store_.end(cell); ++slot) {
    const std::size_t rank = store_.rank(slot);
    if (rank >= end_) break;
    if (within ? rank >= begin_ && !gone_[rank - begin_] : rank < begin_ && kept_[slot])
      members.push_back(static_cast<std::uint32_t>(slot));
  }
  const auto least =
      static_cast<std::int32_t>((search_.threshold - kSketchSlack) * kSketchScale * kSketchScale);
  std::vector<std::int16_t> tile(width_ * kTileSide);
  TileProducts products;
  VisitorRows rows(store_, search_.dim);
  std::vector<PassedPair> near;  // pairs whose sketches pass
  for (std::size_t first = 0; first < members.size(); first += kTileSide) {
    const std::span some =
        std::span(members).subspan(first, std::min(kTileSide, members.size() - first));
    const std::int16_t* sketches[kTileSide];
    for (std::size_t j = 0; j < some.size(); ++j)
      sketches[j] = store_.sketch(some[j]);
    fill_tile(sketches, some.size(), width_, tile.data());
    near.clear();
    for (std::size_t i = 0; i < visitors.size(); i += 4) {
      const std::int16_t* four[4];
      for (std::size_t r = 0; r < 4; ++r)
        four[r] = store_.sketch(visitors[std::min(i + r, visitors.size() - 1)]);
      tile_products(four, width_, tile.data(), products);
      for (std::size_t r = 0; r < 4 && i + r < visitors.size(); ++r) {
        if (*std::max_element(products[r], products[r] + kTileSide) < least) continue;
        const std::uint32_t item = visitors[i + r];
        for (std::uint32_t j = 0; j < some.size(); ++j)
          if (products[r][j] >= least && store_.rank(some[j]) < store_.rank(item))
            near.push_back({item, j});
      }
    }
    compare_rows(some, near, rows, passed);
    if (passed.pairs.size() > kMostPairs && end_ - begin_ > 1) throw TooMany();
  }
}

/// Compares the vectors of pairs whose sketches pass. Reads each vector of the tile once.
void CellFinder::compare_rows(std::span<const std::uint32_t> tile, std::span<const PassedPair> near,
                              VisitorRows& rows, PassedPairs& passed) const {
  const float least = static_cast<float>(search_.threshold) - kFloatSlack;
  std::vector<float> members[kTileSide];
  for (const auto& [item, j] : near) {
    if (members[j].empty()) store_.read(store_.rank(tile[j]), members[j]);
    if (float_product(rows.row(item), members[j].data(), search_.dim) >= least)
      passed.pairs.push_back({item, tile[j]});
  }
  passed.decided += near.size();
}

/// Returns the pairs that pass, sorted by rank of the item, then of the other. Throws TooMany; this
/// does not depend on the number of slots.
std::vector<PassedPair> CellFinder::compare(bool within) {
  std::atomic<std::size_t> count = 0;
  std::vector<PassedPair> all;
  in_portions<PassedPairs>(
      slots_, store_.cells().count(), kCellsAtOnce,
      [&](std::size_t first, std::size_t last) {
        PassedPairs passed;
        for (std::size_t cell = first; cell < last; ++cell)
          compare_cell(cell, within, passed);
        if ((count += passed.pairs.size()) > kMostPairs && end_ - begin_ > 1) throw TooMany();
        return passed;
      },
      [&](PassedPairs& passed) {
        block_counts_.decided += passed.decided;
        all.insert(all.end(), passed.pairs.begin(), passed.pairs.end());
      });
  const auto ranks = [&](const PassedPair& pair) {
    return std::pair(store_.rank(pair.item), store_.rank(pair.other));
  };
  std::sort(all.begin(), all.end(),
            [&](const PassedPair& a, const PassedPair& b) { return ranks(a) < ranks(b); });
  return all;
}

/// Returns the pairs whose exact cosine reaches the threshold: the first pair of each item, or all.
std::vector<NearDuplicate> CellFinder::decide(const std::vector<PassedPair>& pairs, bool all) {
  std::vector<std::size_t> firsts;  // index of the first pair of each item
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (i == 0 || pairs[i].item != pairs[i - 1].item) firsts.push_back(i);
  const std::size_t items = firsts.size();
  firsts.push_back(pairs.size());
  std::vector<NearDuplicate> near;
  constexpr std::size_t kItemsAtOnce = 16;
  in_portions<std::vector<NearDuplicate>>(
      slots_, items, kItemsAtOnce,
      [&](std::size_t begin, std::size_t end) {
        std::vector<NearDuplicate> found;
        std::vector<float> row, other;
        for (std::size_t item = begin; item < end; ++item) {
          const std::size_t rank = store_.rank(pairs[firsts[item]].item);
          store_.read(rank, row);
          for (std::size_t i = firsts[item]; i < firsts[item + 1]; ++i) {
            const std::size_t better = store_.rank(pairs[i].other);
            store_.read(better, other);
            const double cosine = near_cosine(row, other);
            if (cosine < search_.threshold) continue;
            found.push_back({rank, better, cosine});
            if (!all) break;
          }
        }
        return found;
      },
      [&](std::vector<NearDuplicate>& found) {
        near.insert(near.end(), found.begin(), found.end());
      });
  return near;
}

std::vector<NearDuplicate> CellFinder::decide_block() {
  block_counts_ = {};
  gone_.assign(end_ - begin_, false);
  look();
  std::vector<NearDuplicate> duplicates = decide(compare(false), false);
  for (const NearDuplicate& one : duplicates)
    gone_[one.item - begin_] = true;
  // Compare the rest with each other in order, because only kept vectors have duplicates.
  for (const NearDuplicate& one : decide(compare(true), true)) {
    if (gone_[one.item - begin_] || gone_[one.keeper - begin_]) continue;
    gone_[one.item - begin_] = true;
    duplicates.push_back(one);
  }
  std::sort(duplicates.begin(), duplicates.end(),
            [](const auto& a, const auto& b) { return a.item < b.item; });
  return duplicates;
}

CellCounts CellFinder::find(const std::function<void(const NearDuplicate&)>& found) {
  counts_.cells = store_.cells().count();
  // Blocks grow from a small one. If many vectors are alike, the first blocks remove most of them.
  for (std::size_t size = kLeastBlock; begin_ < n_;) {
    check_stop();
    end_ = std::min(n_, begin_ + size);
    std::vector<NearDuplicate> duplicates;
    try {
      duplicates = decide_block();
    } catch (const TooMany&) {
      size = std::max<std::size_t>(1, (end_ - begin_) / 2);
      continue;
    }
    for (std::size_t rank = begin_; rank < end_; ++rank)
      if (!gone_[rank - begin_]) kept_[store_.slot(rank)] = true;
    for (const NearDuplicate& one : duplicates)
      found(one);
    counts_.looked_at += block_counts_.looked_at;
    counts_.cut += block_counts_.cut;
    counts_.decided += block_counts_.decided;
    begin_ = end_;
    size = std::min(2 * size, kMostBlock);
  }
  return counts_;
}

}  // namespace

double cell_margin(std::size_t dim) {
  return std::clamp(3 / std::sqrt(static_cast<double>(dim)), 0.5, 1.0);
}

std::size_t cell_sketch_width(std::uint64_t n, std::uint64_t memory) {
  for (std::size_t width = kWidestSketch; width >= kLeastSketch; width /= 2)
    if (n * cell_bytes(width) <= memory) return width;
  return 0;
}

CellCounts find_near_duplicates_in_cells(const CellSearch& search, share::Slots& slots,
                                         const std::function<void(const NearDuplicate&)>& found) {
  if (search.places.empty() || search.dim == 0) return {};
  return CellFinder(search, slots).find(found);
}

}  // namespace vfm::curate
