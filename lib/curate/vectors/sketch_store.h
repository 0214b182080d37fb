// Keeps the sketches of all vectors in memory, sorted by cell, for curate/vectors/cell_search.h.
//
// A vector is addressed by rank, place or slot. The rank is the index in CellSearch::places, with
// better samples first. The place is the argument of CellSearch::read. The slot is the vector's
// index after all vectors are sorted by cell, then by rank. Vectors without a direction are in no
// cell and have the last slots.
// Thread-safety: any thread, after construction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "curate/vectors/cell_search.h"
#include "curate/vectors/sketch.h"
#include "curate/vectors/sketch_cells.h"
#include "share/ordered.h"

namespace vfm::curate {

/// Splits [0, count) into portions of `each` numbers. Calls `work` for each portion, and `done`
/// with each result, in order.
template <class Out>
void in_portions(share::Slots& slots, std::size_t count, std::size_t each,
                 const std::function<Out(std::size_t begin, std::size_t end)>& work,
                 const std::function<void(Out&)>& done) {
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, Out>(
      slots,
      [&]() -> std::optional<std::size_t> {
        if (next >= count) return std::nullopt;
        return std::exchange(next, next + each);
      },
      [&](std::size_t& begin) {
        check_stop();
        return work(begin, std::min(begin + each, count));
      },
      done);
}

class SketchStore {
 public:
  /// Computes the basis and the centres from evenly spaced vectors, then reads all vectors in order
  /// of place. `search` must outlive this object. Throws Stopped and the exceptions of search.read.
  SketchStore(const CellSearch& search, share::Slots& slots);

  /// Reads a vector and scales it to length 1. Returns false if the vector has no direction.
  bool read(std::size_t rank, std::vector<float>& row) const;
  const SketchCells& cells() const { return *cells_; }
  const std::int16_t* sketch(std::size_t slot) const { return &sketches_[slot * width_]; }
  std::size_t slot(std::size_t rank) const { return slot_of_rank_[rank]; }
  std::size_t rank(std::size_t slot) const { return rank_of_slot_[slot]; }
  /// A cell has the slots [begin(cell), end(cell)).
  std::size_t begin(std::size_t cell) const { return begins_[cell]; }
  std::size_t end(std::size_t cell) const { return begins_[cell + 1]; }
  bool in_a_cell(std::size_t slot) const { return slot < begins_.back(); }

 private:
  void learn(share::Slots& slots);
  void sketch_all(share::Slots& slots);
  void arrange(const std::vector<std::uint32_t>& cells);

  const CellSearch& search_;
  std::size_t n_, width_;
  std::optional<Sketcher> sketcher_;
  std::optional<SketchCells> cells_;
  std::vector<std::int16_t> sketches_;
  std::vector<std::uint32_t> slot_of_rank_, rank_of_slot_;
  std::vector<std::size_t> begins_;  // first slot of each cell, and the end
};

}  // namespace vfm::curate
