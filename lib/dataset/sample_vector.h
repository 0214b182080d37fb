// Reads a sample's vector from the member NAME.npy, and the identity of the encoder from the JSON
// field NAME_encoder.
//
// If the array has two dimensions and several rows, like the tokens of a caption, each row is
// scaled to length 1, and the vector is the mean of the rows. Otherwise the array is the vector.
// Vectors are compared only if their lengths and their encoders are equal. The folders of the
// encoders may differ. Thread-safety: any thread.
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

/// Member of a sample whose vector is compared by default to find near duplicates.
inline constexpr const char* kDefaultVector = "video.npy";

struct SampleVector {
  std::vector<float> values;  ///< Numbers of the vector. Empty if the sample has no vector.
  std::uint64_t encoder = 0;  ///< Hash of the encoder, equal for comparable vectors.
  std::string by;             ///< encoder_identity() as text, or empty if unknown.
};

/// Returns the vector in a sample's `member`, such as "video.npy". Throws Error if the member
/// exists but is not an array of numbers.
SampleVector sample_vector(const JoinedSample& sample, std::string_view member);

/// Returns the values scaled to length 1, as 16-bit floats. Returns an empty text if the values are
/// all zeros or not finite.
std::string unit_halves(const std::vector<float>& values);

/// A table of encoders' identities. The key is SampleVector::encoder. A very large table is cut to
/// a part that does not depend on the order of the input.
class VectorNames {
 public:
  void add(const SampleVector& vector);
  void add(std::uint64_t encoder, std::string by);
  void merge(const VectorNames& other);
  /// Returns the identity as JSON, or null if it is unknown.
  Json of(std::uint64_t encoder) const;
  const std::map<std::uint64_t, std::string>& names() const { return names_; }

 private:
  void cut();
  std::map<std::uint64_t, std::string> names_;
};

/// Throws Error{usage}, which names `option`, if `member` does not have the form "NAME.npy".
void check_vector_name(const std::string& option, const std::string& member);

}  // namespace vfm::dataset
