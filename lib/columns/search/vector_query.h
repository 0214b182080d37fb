// Turns the query of an index search into unit vectors by the index's encoder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "columns/search/search.h"
#include "columns/search/vector_index.h"

namespace vfm::columns {

struct VectorQueries {
  std::size_t dim = 0;
  std::vector<float> values;  ///< Unit vectors, [n, dim].
  bool numbered = false;      ///< Whether the query is a file of vectors.

  std::size_t count() const { return values.size() / dim; }
  std::vector<float> one(std::size_t i) const {
    return {values.begin() + static_cast<std::ptrdiff_t>(i * dim),
            values.begin() + static_cast<std::ptrdiff_t>((i + 1) * dim)};
  }
};

/// Returns the unit vectors of a query. The query is a text, a video or picture file, or a .npy
/// file of floats with a vector in each row. Throws Error{usage} if the query is invalid or does
/// not fit the vectors of `model`, and Error if the encoder is missing.
VectorQueries vector_queries(const SearchOptions& options, const IndexModel& model);

}  // namespace vfm::columns
