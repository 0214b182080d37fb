// Near duplicates: samples whose embeddings point the same way.
//
// Exact, not approximate: every pair that could matter is decided on its true cosine, over the
// whole dataset, not within clusters. To make this fast, dimensions are sorted by variance, and a
// pair is dropped as soon as the first dimensions and the lengths of the rest prove (Cauchy and
// Schwarz) that its cosine is below the threshold. All vectors are in memory, and time grows with
// the square of their number; curate/vectors/cell_search.h handles more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "share/slots.h"

namespace vfm::curate {

struct NearDuplicate {
  std::size_t item = 0;    ///< to drop
  std::size_t keeper = 0;  ///< kept instead: better, and itself no duplicate
  double cosine = 0;
};

/// `embeddings` holds n rows of `dim` numbers, the better sample first. An item is a duplicate if a
/// *kept* item before it has a cosine of at least `threshold` (0 < threshold <= 1) to it; the first
/// such item is its keeper. So a dropped item never causes another drop. Rows of zeros, and rows
/// with a number that is not finite, are nobody's duplicates. Items rise in the result, which does
/// not depend on the number of slots. Memory: the embeddings, of near_width(dim) numbers each, if
/// that much is reserved, and their first 64 numbers. Throws Stopped.
std::vector<NearDuplicate> find_near_duplicates(std::vector<float> embeddings, std::size_t dim,
                                                double threshold, share::Slots& slots);
/// `dim` rounded up to the numbers compared together.
std::size_t near_width(std::size_t dim);

/// Scales a row to length 1, for this search and curate/vectors/cell_search.h; sets zeros, and
/// returns false, if it has no direction.
bool to_unit_row(std::span<float> row);
/// The cosine of two rows that to_unit_row() made, summed in the order of their numbers, rounded to
/// 9 digits: equal vectors have exactly the cosine 1.
double near_cosine(std::span<const float> a, std::span<const float> b);

}  // namespace vfm::curate
