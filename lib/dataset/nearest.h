// Finds the samples nearest to each of a few samples, by the exact cosine of vectors.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/item_store.h"
#include "share/slots.h"

namespace vfm::dataset {

/// A sample's vector in Item::notes, scaled to length 1. `halves` has the vector as 16-bit floats,
/// or is empty if the sample has no vector.
struct NotedVector {
  std::uint64_t encoder = 0;
  std::string_view halves;
};
using VectorOfNotes = std::function<NotedVector(std::string_view notes)>;

struct NearSample {
  float cosine = 0;
  std::string key;
  std::uint32_t number = 0;
};

/// For each query, returns up to `most` other samples: those with the largest cosines, in
/// descending order. Equal cosines are sorted by key. Only vectors of the same encoder are
/// compared. A query without a vector has no result. Each query is the number of a kept sample.
/// `vectors` receives the count of kept samples that have a vector. Throws Stopped.
std::vector<std::vector<NearSample>> nearest_samples(const ItemStore& items,
                                                     const std::vector<std::uint32_t>& queries,
                                                     std::size_t most,
                                                     const VectorOfNotes& vector_of,
                                                     std::uint64_t& vectors, share::Slots& slots);

}  // namespace vfm::dataset
