// Finds near duplicates among more vectors than fit into memory. Memory contains a short sketch of
// each vector (curate/vectors/sketch.h). Only sketches in neighbouring cells are compared
// (curate/vectors/sketch_cells.h).
//
// The result is that of curate/vectors/dedup.h, except that pairs may be missed. If two sketches
// are close, the cosine of the stored vectors decides. A pair is missed only if the cell of one
// vector is not searched for the other vector. If the margin is 1 and the number of searched cells
// is not limited, no pair is missed.
//
// For n vectors of d numbers and sketches of w numbers, the caller stores 2 n d bytes (16-bit
// numbers) or 4 n d bytes (32-bit). The search needs n (2 w + 20) bytes of memory. The number of
// multiplications grows with n sqrt(n) w. For 10^7 vectors of 768 numbers and w = 128, the caller
// stores 15 GB and the search needs 2.8 GB.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "curate/vectors/dedup.h"
#include "share/slots.h"

namespace vfm::curate {

/// Returns the default CellSearch::margin for vectors of `dim` numbers. The default is 0.5, or more
/// if `dim` is small.
double cell_margin(std::size_t dim);
inline constexpr std::size_t kMostCells = 64;

struct CellSearch {
  std::size_t dim = 0;
  double threshold = 1;  ///< Minimum cosine of a duplicate.
  /// The places of the n vectors, with better samples first. The places are a permutation of [0,
  /// n), and n is below 2^32.
  std::vector<std::uint32_t> places;
  /// A function that reads the `dim` numbers of the vector at a place. Any thread may call
  /// the function. Reads of consecutive places should be quick.
  std::function<void(std::size_t place, float* out)> read;
  std::size_t width = 0;          ///< Width of sketches, from cell_sketch_width().
  double margin = 1;              ///< Value of SketchCells::Reach::margin.
  std::size_t most = kMostCells;  ///< Largest number of cells to search for a vector.
  std::size_t cells = 0;          ///< Number of cells. 0 means 2 sqrt(n).
};

struct CellCounts {
  std::uint64_t cells = 0;
  std::uint64_t looked_at = 0;  ///< Number of searched cells, summed over all vectors.
  std::uint64_t cut = 0;        ///< Number of vectors for which CellSearch::most left out cells.
  /// Number of pairs that were decided by the cosine of the stored vectors.
  std::uint64_t decided = 0;
};

inline constexpr std::size_t kLeastSketch = 32;
/// Returns the number of bytes of memory for each vector with sketches of `width` numbers.
inline constexpr std::uint64_t cell_bytes(std::size_t width) {
  return 2 * width + 20;
}
/// Returns the largest width of sketches, 128, 64 or 32, with which `n` vectors fit into `memory`
/// bytes. Returns 0 if no width fits.
std::size_t cell_sketch_width(std::uint64_t n, std::uint64_t memory);

/// Calls `found` with each duplicate, in order of items. Items and keepers have the same meaning as
/// in find_near_duplicates(). The result does not depend on the processor, the number of slots, or
/// the places of the vectors. Throws Stopped and the exceptions of `read`.
CellCounts find_near_duplicates_in_cells(const CellSearch& search, share::Slots& slots,
                                         const std::function<void(const NearDuplicate&)>& found);

}  // namespace vfm::curate
