// Near duplicates among more vectors than memory holds: by cells of sketches.
//
// The result is that of curate/vectors/dedup.h, except that it may miss pairs; each pair seen is
// decided on its true cosine, to the same bits. Memory holds a sketch of each vector
// (curate/vectors/sketch.h). Vectors are read from where they are stored, once in order, and again
// for pairs that pass by their sketches, as every pair above the threshold does. A pair is missed
// only if the second lies in a cell that is not searched (curate/vectors/sketch_cells.h): never
// with a margin of 1 and no limit to the number of cells.
//
// The cost in products of two numbers, for n vectors of d numbers, sketches of w numbers, and k = 2
// sqrt(n) cells, of which each vector searches v:
//   sketches       n d w        of 10^7 vectors, d = 768, w = 128:        1.0e12
//   own cells      n k w                                                  8.1e12
//   cells to look  n k w        again, as keeping them would take memory  8.1e12
//   comparing      n v n/k w/2  as a vector is compared with better ones  1.0e12 v
// The caller writes 2 n d bytes (or 4 n d), 15 GB here, which are read once in order. Memory is n
// (2 w + 20) bytes, 2.8 GB, or less with narrower sketches. Each pair that passes costs d more
// products, and a block reads a vector once for all its pairs in a cell. Sketches are float
// products in one order, and all else is in whole numbers: the result does not depend on the
// processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "curate/vectors/dedup.h"
#include "share/slots.h"

namespace vfm::curate {

/// The default margin of the search around each vector. A random direction in m dimensions has a
/// root mean square component of 1/sqrt(m) along a given one. So a margin of one half is three
/// times that if near vectors differ in 36 or more dimensions; with fewer numbers it is larger.
double cell_margin(std::size_t dim);
inline constexpr std::size_t kMostCells = 64;

struct CellSearch {
  std::size_t dim = 0;
  double threshold = 1;  ///< as that of find_near_duplicates()
  /// The places of the vectors, the better sample first: a permutation of 0 to n - 1. n is below
  /// 2^32.
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

/// Bytes of memory for each vector with sketches of `width`; and the widest sketch, 128, 64 or 32,
/// with which `n` vectors fit into `memory`; 0 if none.
inline constexpr std::size_t kLeastSketch = 32;
inline constexpr std::uint64_t cell_bytes(std::size_t width) {
  return 2 * width + 20;
}
std::size_t cell_sketch_width(std::uint64_t n, std::uint64_t memory);

/// Calls `found` with each duplicate, items rising; item and keeper as in find_near_duplicates().
/// The result does not depend on the number of slots or the vectors' places. Throws Stopped, and
/// what `read` throws.
CellCounts find_near_duplicates_in_cells(const CellSearch& search, share::Slots& slots,
                                         const std::function<void(const NearDuplicate&)>& found);

}  // namespace vfm::curate
