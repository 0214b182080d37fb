// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/sketch_store.h"

#include <cmath>
#include <numeric>

#include "curate/vectors/dedup.h"

namespace vfm::curate {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{48} << 20;  // limits of the sample for the basis
constexpr std::size_t kSampleRows = 16384;
constexpr std::size_t kRowsPerCell = 16;  // vectors from which centres are found
constexpr std::size_t kReadAtOnce = 256;  // limits of vectors that a thread takes
constexpr std::size_t kReadBytes = std::size_t{4} << 20;
constexpr std::uint32_t kNoCell = ~std::uint32_t{0};

}  // namespace

SketchStore::SketchStore(const CellSearch& search, share::Slots& slots)
    : search_(search), n_(search.places.size()), width_(search.width) {
  learn(slots);
  sketch_all(slots);
}

bool SketchStore::read(std::size_t rank, std::vector<float>& row) const {
  row.resize(search_.dim);
  search_.read(search_.places[rank], row.data());
  return to_unit_row(row);
}

/// Takes vectors evenly spaced by rank, so that their places have no effect.
void SketchStore::learn(share::Slots& slots) {
  const std::size_t wanted = search_.cells
                                 ? search_.cells
                                 : static_cast<std::size_t>(2 * std::sqrt(static_cast<double>(n_)));
  const std::size_t some = std::min(n_, std::max<std::size_t>(1, wanted) * kRowsPerCell);
  const std::size_t most = std::min(
      kSampleRows, std::max<std::size_t>(width_, kSampleBytes / (search_.dim * sizeof(float))));
  const std::size_t rows = search_.dim > kLongestTrained ? 0 : std::min(n_, most);
  std::vector<float> sample, row;
  sample.reserve(rows * search_.dim);
  for (std::size_t i = 0; i < rows; ++i)
    if (read(i * n_ / rows, row)) sample.insert(sample.end(), row.begin(), row.end());
  sketcher_ = Sketcher::train(sample, search_.dim, width_, slots);
  std::vector<std::int16_t> sketches;
  in_portions<std::vector<std::int16_t>>(
      slots, some, kReadAtOnce,
      [&](std::size_t begin, std::size_t end) {
        std::vector<std::int16_t> out;
        std::vector<float> one;
        for (std::size_t i = begin; i < end; ++i) {
          if (!read(i * n_ / some, one)) continue;
          out.resize(out.size() + width_);
          sketcher_->sketch(one.data(), 1, &out[out.size() - width_]);
        }
        return out;
      },
      [&](std::vector<std::int16_t>& out) {
        sketches.insert(sketches.end(), out.begin(), out.end());
      });
  cells_ = SketchCells::find(sketches, width_, wanted, slots);
}

/// Reads all vectors in order of place, then moves their sketches to their slots.
void SketchStore::sketch_all(share::Slots& slots) {
  std::vector<std::uint32_t> cells(n_, kNoCell);  // by place
  sketches_.resize(n_ * width_);
  const std::size_t at_once =
      std::clamp<std::size_t>(kReadBytes / (search_.dim * sizeof(float)), 1, kReadAtOnce);
  in_portions<bool>(
      slots, n_, at_once,
      [&](std::size_t begin, std::size_t end) {
        const std::size_t some = end - begin;
        std::vector<float> rows(some * search_.dim);
        std::vector<bool> usable(some);
        for (std::size_t i = 0; i < some; ++i) {
          search_.read(begin + i, &rows[i * search_.dim]);
          usable[i] = to_unit_row({&rows[i * search_.dim], search_.dim});
        }
        sketcher_->sketch(rows.data(), some, &sketches_[begin * width_]);
        cells_->nearest(&sketches_[begin * width_], some, &cells[begin]);
        for (std::size_t i = 0; i < some; ++i)
          if (!usable[i]) cells[begin + i] = kNoCell;
        return true;
      },
      [](bool&) {});
  arrange(cells);
}

void SketchStore::arrange(const std::vector<std::uint32_t>& cells) {
  const std::size_t count = cells_->count();
  begins_.assign(count + 2, 0);  // one more for vectors without a cell
  for (const std::uint32_t cell : cells)
    ++begins_[std::min<std::size_t>(cell, count) + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  slot_of_rank_.resize(n_);
  rank_of_slot_.resize(n_);
  std::vector<std::uint32_t> slot_of_place(n_);
  for (std::size_t rank = 0; rank < n_; ++rank) {
    const std::uint32_t place = search_.places[rank];
    const auto slot =
        static_cast<std::uint32_t>(next[std::min<std::size_t>(cells[place], count)]++);
    slot_of_rank_[rank] = slot_of_place[place] = slot;
    rank_of_slot_[slot] = static_cast<std::uint32_t>(rank);
  }
  begins_.pop_back();
  // Sort the sketches in place by swaps.
  for (std::size_t at = 0; at < n_; ++at)
    while (slot_of_place[at] != at) {
      const std::uint32_t to = slot_of_place[at];
      std::swap_ranges(&sketches_[at * width_], &sketches_[at * width_] + width_,
                       &sketches_[to * width_]);
      std::swap(slot_of_place[at], slot_of_place[to]);
    }
}

}  // namespace vfm::curate
