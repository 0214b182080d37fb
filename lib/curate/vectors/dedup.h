// Finds near duplicates: samples whose embeddings have nearly the same direction.
//
// The result is exact, because all pairs of vectors are compared. All vectors are in memory, and
// the time grows with the square of their number. For more vectors, use
// curate/vectors/cell_search.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "share/slots.h"

namespace vfm::curate {

struct NearDuplicate {
  std::size_t item = 0;    ///< Index of the item to drop.
  std::size_t keeper = 0;  ///< Index of a better item that is kept.
  double cosine = 0;
};

/// Returns the duplicates in `embeddings`, sorted by item. `embeddings` has n rows of `dim`
/// numbers, with better samples first. An item is a duplicate if its cosine to an earlier, kept
/// item is at least `threshold` (0 < threshold <= 1). The keeper is the first such earlier item.
/// Rows of zeros and rows with infinity or NaN are never duplicates. The result does not depend on
/// the number of slots. The search needs memory for n rows of near_width(dim) numbers, and for n
/// rows of 64 numbers. The rows of near_width(dim) numbers use the memory of `embeddings` if
/// `embeddings` has enough capacity. Throws Stopped.
std::vector<NearDuplicate> find_near_duplicates(std::vector<float> embeddings, std::size_t dim,
                                                double threshold, share::Slots& slots);
/// Returns the stored length of a row, which is `dim` rounded up to a multiple of 64.
std::size_t near_width(std::size_t dim);

/// Scales a row to length 1. If the row has no direction, fills the row with zeros and returns
/// false.
bool to_unit_row(std::span<float> row);
/// Returns the cosine of two rows that to_unit_row() has scaled. The sum has a fixed order and is
/// rounded to 9 digits. Equal rows give exactly 1.
double near_cosine(std::span<const float> a, std::span<const float> b);

}  // namespace vfm::curate
