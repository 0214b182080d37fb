// Near duplicates among more vectors than memory holds: by cells of sketches.
//
// The result is that of curate/dedup.h, but for pairs that are not seen; each that is seen is
// decided on its true cosine, in the same way and to the same bits. In memory is a sketch of each
// vector (curate/sketch.h); vectors are read where they stand, once in order and then those of
// pairs that sketches let pass, which none with a cosine of the threshold fails to do. A pair is
// missed only if the second lies in a cell that is not looked at (curate/sketch_cells.h): never
// with a margin of 1 and no limit to their number.
//
// What it takes, for n vectors of d numbers, sketches of w, k = 2 sqrt(n) cells of which v are
// looked at by each vector, counted in products of two numbers:
//   sketches       n d w        of 10^7 vectors, d = 768, w = 128:        1.0e12
//   own cells      n k w                                                  8.1e12
//   cells to look  n k w        again, as keeping them would take memory  8.1e12
//   comparing      n v n/k w/2  as a vector is compared with better ones  1.0e12 v
// and bytes: 2 n d (or 4), 15 GB here, are written by who calls and read once in order; in memory
// are n (2 w + 20), 2.8 GB, and less with narrower sketches. Pairs that pass take d more each, and
// each vector of a block of them is read once for all its pairs in a cell. Sketches are products
// of floats in one order, and all else is in whole numbers: the result does not depend on the
// processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/slots.h"
#include "curate/dedup.h"

namespace vfm::curate {

/// How far around each vector is looked, by default. Of a way in a direction of chance among m
/// dimensions, a given one has 1/sqrt(m) on average (root mean square): so half of it is three
/// times that if vectors differ from near ones in 36 ways or more, and with fewer numbers it is
/// more.
double cell_margin(std::size_t dim);
inline constexpr std::size_t kMostCells = 64;

struct CellSearch {
  std::size_t dim = 0;
  double threshold = 1;  ///< as that of find_near_duplicates()
  /// Where the vectors stand, the better sample first: 0 to n - 1, each once. n is below 2^32.
  std::vector<std::uint32_t> places;
  /// Reads the vector at a place: `dim` numbers. From any thread; quick for neighbours in turn.
  std::function<void(std::size_t place, float* out)> read;
  std::size_t width = 0;          ///< of sketches: cell_sketch_width()
  double margin = 1;              ///< of the distance within which nothing is missed
  std::size_t most = kMostCells;  ///< cells that a vector is compared with
  std::size_t cells = 0;          ///< how many there are; 0: 2 sqrt(n)
};

struct CellCounts {
  std::uint64_t cells = 0;
  std::uint64_t looked_at = 0;  ///< cells, by all vectors together
  std::uint64_t cut = 0;        ///< vectors that `most` stopped
  std::uint64_t decided = 0;    ///< pairs that their sketches let pass
};

/// Bytes in memory for each vector with sketches of `width`, and the widest sketch with which `n`
/// vectors take `memory` at most: 128, 64 or 32; 0 if there is none.
inline constexpr std::size_t kLeastSketch = 32;
inline constexpr std::uint64_t cell_bytes(std::size_t width) {
  return 2 * width + 20;
}
std::size_t cell_sketch_width(std::uint64_t n, std::uint64_t memory);

/// Calls `found` with each duplicate, items rising; item and keeper as find_near_duplicates() has
/// them. The same at any number of slots, and wherever the vectors stand. Throws Stopped, and what
/// `read` throws.
CellCounts find_near_duplicates_in_cells(const CellSearch& search, Slots& slots,
                                         const std::function<void(const NearDuplicate&)>& found);

}  // namespace vfm::curate
