// Finds near duplicates: samples whose embeddings have nearly the same direction.
//
// The result is exact: all pairs of the dataset are compared, by their true cosines. For speed,
// dimensions are sorted by variance, and a pair is dropped as soon as its first dimensions and the
// lengths of the remaining dimensions prove (Cauchy and Schwarz) that its cosine is below the
// threshold. All vectors are in memory, and time grows with the square of their number;
// curate/vectors/cell_search.h handles more vectors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "share/slots.h"

namespace vfm::curate {

struct NearDuplicate {
  std::size_t item = 0;    ///< the item to drop
  std::size_t keeper = 0;  ///< a better item that is kept
  double cosine = 0;
};

/// Finds the duplicates among `embeddings`: n rows of `dim` numbers, the better sample first. An
/// item is a duplicate if a *kept* item before it has a cosine of at least `threshold` (0 <
/// threshold <= 1) to it; the first such item is its keeper. Rows of zeros, and rows with a number
/// that is not finite, are never duplicates. The result is sorted by item, and does not depend on
/// the number of slots. Memory: n rows of near_width(dim) numbers (in place if `embeddings` has
/// reserved them), and n rows of 64 numbers. Throws Stopped.
std::vector<NearDuplicate> find_near_duplicates(std::vector<float> embeddings, std::size_t dim,
                                                double threshold, share::Slots& slots);
/// Returns `dim` rounded up to a multiple of the numbers compared at once.
std::size_t near_width(std::size_t dim);

/// Scales a row to length 1. If it has no direction, sets it to zeros and returns false.
bool to_unit_row(std::span<float> row);
/// Returns the cosine of two rows of to_unit_row(), summed in order and rounded to 9 digits. The
/// result is exactly 1 for equal rows.
double near_cosine(std::span<const float> a, std::span<const float> b);

}  // namespace vfm::curate
