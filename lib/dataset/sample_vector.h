// The vector of a sample, from its member NAME.npy, and its encoder.
//
// An array of one row, or of other than two dimensions, is the vector itself; one of several rows,
// such as the tokens of a caption, counts as the mean of its rows, each brought to length 1 first.
// The JSON names the encoder of NAME.npy as NAME_encoder. Vectors are compared only if their
// encoders, except for the folder, and their lengths are equal.
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
  std::vector<float> values;  ///< empty: the sample has none
  std::uint64_t encoder = 0;  ///< equal for vectors that compare
  std::string by;             ///< encoder_identity() as text; empty: the JSON does not say
};

/// `member`: "video.npy". Throws Error if it exists and is not an array of numbers.
SampleVector sample_vector(const JoinedSample& sample, std::string_view member);

/// The values scaled to length 1, as halves; empty if they have no direction.
std::string unit_halves(const std::vector<float>& values);

/// The encoders' identities, by SampleVector::encoder. If there are very many, some are kept: the
/// same ones in any order of the input.
class EncoderNames {
 public:
  void add(const SampleVector& vector);
  void merge(const EncoderNames& other);
  /// The identity as JSON; null if unknown.
  Json of(std::uint64_t encoder) const;

 private:
  void cut();
  std::map<std::uint64_t, std::string> names_;
};

/// Throws Error{usage} that names `option` unless `member` is the name of one: "NAME.npy".
void check_vector_name(const std::string& option, const std::string& member);

}  // namespace vfm::dataset
