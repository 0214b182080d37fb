// The nearest of all samples to a few of them, by the cosine of their vectors: exact, in one walk
// over what is noted of the samples. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/slots.h"
#include "dataset/item_store.h"

namespace vfm::dataset {

/// As it is noted: of length 1, as halves; empty where there is none.
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

/// For each of `queries`, numbers of samples that are kept, the `most` others of its encoder with
/// the largest cosine, the largest first, of equals the smaller key; none for one without a vector.
/// The same at any number of slots. `vectors`: how many kept samples have one. Throws Stopped.
std::vector<std::vector<NearSample>> nearest_samples(const ItemStore& items,
                                                     const std::vector<std::uint32_t>& queries,
                                                     std::size_t most,
                                                     const VectorOfNotes& vector_of,
                                                     std::uint64_t& vectors, Slots& slots);

}  // namespace vfm::dataset
