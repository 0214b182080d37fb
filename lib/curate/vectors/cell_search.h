// Finds near duplicates among more vectors than fit into memory, by cells of sketches.
//
// The result equals that of curate/vectors/dedup.h, except that pairs may be missed. The true
// cosine, with the same bits, decides each candidate pair. Memory holds a sketch of each vector
// (curate/vectors/sketch.h). Stored vectors are read once in order, and again for pairs whose
// sketches pass, as those of every pair above the threshold do. A pair is missed only if the second
// vector lies in a cell that is not searched (curate/vectors/sketch_cells.h). No pair is missed
// with margin 1 and no limit to the number of cells.
//
// The cost in products of two numbers, for n vectors of d numbers, sketches of w numbers, and k = 2
// sqrt(n) cells, of which each vector searches v:
//   sketches       n d w        of 10^7 vectors, d = 768, w = 128:        1.0e12
//   own cells      n k w                                                  8.1e12
//   cells to look  n k w        again, since the first are not kept       8.1e12
//   comparing      n v n/k w/2  each vector only with better ones         1.0e12 v
// The caller stores 2 n d bytes (or 4 n d), 15 GB here. Memory is n (2 w + 20) bytes, 2.8 GB here,
// or less with narrower sketches. Each pair that passes costs d more products. The result does not
// depend on the processor: sketches are float products in a fixed order, and all other steps use
// whole numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "curate/vectors/dedup.h"
#include "share/slots.h"

namespace vfm::curate {

/// Returns the default CellSearch::margin: 0.5, and more for vectors of few numbers.
double cell_margin(std::size_t dim);
inline constexpr std::size_t kMostCells = 64;

struct CellSearch {
  std::size_t dim = 0;
  double threshold = 1;  ///< as in find_near_duplicates()
  /// The places of the vectors, the better sample first: a permutation of 0 to n - 1, n < 2^32.
  std::vector<std::uint32_t> places;
  /// Reads the `dim` numbers of the vector at a place. It is called from any thread, and should be
  /// quick for consecutive places.
  std::function<void(std::size_t place, float* out)> read;
  std::size_t width = 0;          ///< width of sketches: cell_sketch_width()
  double margin = 1;              ///< SketchCells::Reach::margin
  std::size_t most = kMostCells;  ///< most cells that a vector is compared with
  std::size_t cells = 0;          ///< number of cells; 0: 2 sqrt(n)
};

struct CellCounts {
  std::uint64_t cells = 0;
  std::uint64_t looked_at = 0;  ///< cells, summed over all vectors
  std::uint64_t cut = 0;        ///< vectors with cells left out because of `most`
  std::uint64_t decided = 0;    ///< pairs whose sketches passed
};

/// The bytes of memory for each vector with sketches of `width`.
inline constexpr std::size_t kLeastSketch = 32;
inline constexpr std::uint64_t cell_bytes(std::size_t width) {
  return 2 * width + 20;
}
/// Returns the widest sketch, 128, 64 or 32, with which `n` vectors fit into `memory`. Returns 0 if
/// none fits.
std::size_t cell_sketch_width(std::uint64_t n, std::uint64_t memory);

/// Calls `found` with each duplicate, by rising item; item and keeper are as in
/// find_near_duplicates(). The result does not depend on the number of slots or the vectors'
/// places. Throws Stopped, and what `read` throws.
CellCounts find_near_duplicates_in_cells(const CellSearch& search, share::Slots& slots,
                                         const std::function<void(const NearDuplicate&)>& found);

}  // namespace vfm::curate
