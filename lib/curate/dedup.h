// Near duplicates: samples whose embeddings point the same way.
//
// Exact, not approximate: every pair that could matter is decided on its true cosine, over the
// whole dataset, not within clusters. What makes it feasible: the dimensions are sorted by
// variance, and a pair is dropped from view as soon as the first of them and the lengths of the
// rest prove (Cauchy and Schwarz) that its cosine is below the threshold. All vectors are in
// memory, and time grows with the square of their number: of more, curate/cell_search.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/slots.h"

namespace vfm::curate {

struct NearDuplicate {
  std::size_t item = 0;    ///< the one to drop
  std::size_t keeper = 0;  ///< the one that is kept instead: better, and itself no duplicate
  double cosine = 0;
};

/// `embeddings` holds n rows of `dim` numbers, the better sample first. An item is a duplicate if a
/// *kept* item before it has a cosine of at least `threshold` (0 < threshold <= 1) to it; the first
/// such is its keeper. So a dropped item never causes another drop. Rows of zeros, and rows with a
/// number that is not finite, are nobody's duplicates. Items rise in the result, which does not
/// depend on the number of slots. Memory: the embeddings, of near_width(dim) numbers each, if that
/// much is reserved, and their first 64 numbers. Throws Stopped.
std::vector<NearDuplicate> find_near_duplicates(std::vector<float> embeddings, std::size_t dim,
                                                double threshold, Slots& slots);
/// `dim` filled up to what is looked at together.
std::size_t near_width(std::size_t dim);

/// What both ways to near duplicates (the other one is curate/cell_search.h) compare: makes a row
/// one of length 1; of zeros, and false, if it has no direction.
bool to_unit_row(std::span<float> row);
/// The cosine of two rows that to_unit_row() made, summed in the order of their numbers, rounded to
/// 9 digits: equal vectors have the cosine 1, whatever the last bits of the sums say.
double near_cosine(std::span<const float> a, std::span<const float> b);

}  // namespace vfm::curate
