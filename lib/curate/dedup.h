// Near duplicates: samples whose embeddings point the same way.
//
// Exact, not approximate: every pair that could matter is decided on its true cosine, over the
// whole dataset, not within clusters. What makes it feasible: the dimensions are sorted by
// variance, and a pair is dropped from view as soon as the first of them and the lengths of the
// rest prove (Cauchy and Schwarz) that its cosine is below the threshold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
/// depend on the number of slots. Memory: two copies of the embeddings. Throws Stopped.
std::vector<NearDuplicate> find_near_duplicates(std::vector<float> embeddings, std::size_t dim,
                                                double threshold, Slots& slots);

}  // namespace vfm::curate
