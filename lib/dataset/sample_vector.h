// Reads a sample's vector from its member NAME.npy, and the identity of its encoder.
//
// The array is the vector, unless it has two dimensions and several rows, like the tokens of a
// caption. Then the vector is the mean of the rows, each scaled to length 1 first. The JSON's field
// NAME_encoder gives the encoder of NAME.npy. Vectors are compared only if their encoders (folders
// may differ) and lengths are equal.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "dataset/join.h"

namespace vfm::dataset {

/// The default member for near duplicates.
inline constexpr const char* kDefaultVector = "video.npy";

struct SampleVector {
  std::vector<float> values;  ///< empty: the sample has no vector
  std::uint64_t encoder = 0;  ///< only vectors with equal numbers are compared
  std::string by;             ///< encoder_identity() as text; empty: unknown
};

/// Returns the vector in a sample's `member`, such as "video.npy". Throws Error if the member
/// exists and is not an array of numbers.
SampleVector sample_vector(const JoinedSample& sample, std::string_view member);

/// Returns the values scaled to length 1, as halves. Returns an empty text if the values are all
/// zeros or not finite.
std::string unit_halves(const std::vector<float>& values);

/// Encoders' identities by SampleVector::encoder. If there are very many identities, only a part is
/// kept, the same part for any order of the input.
class VectorNames {
 public:
  void add(const SampleVector& vector);
  void merge(const VectorNames& other);
  /// Returns the identity as JSON, or null if it is unknown.
  Json of(std::uint64_t encoder) const;

 private:
  void cut();
  std::map<std::uint64_t, std::string> names_;
};

/// Throws Error{usage}, which names `option`, unless `member` is like "NAME.npy".
void check_vector_name(const std::string& option, const std::string& member);

}  // namespace vfm::dataset
