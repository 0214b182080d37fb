// Finite scalar quantisation: each of d numbers is bounded by a tanh and rounded to one of L_i
// levels, and the d levels together are one code below L_1 L_2 ... L_d.
//
// A number z becomes level n = round(tanh(z + s) h - o), with h = (L - 1) (1 + 1e-3) / 2, o = 1/2
// for even L, else 0, and s = atanh(o / h). Levels begin at -floor(L / 2). The value of a level is
// n / floor(L / 2). The code is the sum of (n_i + floor(L_i / 2)) times the product of all L_j with
// j < i. Source: Mentzer et al., "Finite Scalar Quantization" (2023); NVIDIA's discrete Cosmos
// tokenizers use levels [8, 8, 8, 5, 5, 5]. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/pointwise/fsq.h"

namespace vfm::models {

/// Levels with 64,000 codes.
inline const std::vector<int> kFsqLevels{8, 8, 8, 5, 5, 5};

class Fsq {
 public:
  /// Throws Error unless there are 1 to 16 numbers of 3 to 1,024 levels, and fewer than 2^31 codes.
  explicit Fsq(std::vector<int> levels);

  const std::vector<int>& levels() const { return levels_; }
  std::size_t dimensions() const { return levels_.size(); }
  int codes() const { return codes_; }

  /// Returns the code of the numbers z[0], z[stride], ...
  std::int32_t encode(const float* z, std::size_t stride) const;
  /// Returns the code that has these values, or the nearest values.
  std::int32_t code(const float* values, std::size_t stride) const;
  /// Writes the values of a code, in [-1, 1], to out[0], out[stride], ... Throws Error unless the
  /// code is in [0, codes()).
  void values(std::int32_t code, float* out, std::size_t stride) const;
  /// Returns the middle of the numbers that become the level of `value` (or the nearest level) in
  /// dimension i. The outermost levels have no outer end: the result is as far beyond their inner
  /// edge as the middle of the neighbouring level is before it.
  float unbound(std::size_t i, float value) const;

 private:
  std::vector<int> levels_;
  ops::FsqLevels bounds_;
  int codes_ = 1;
};

}  // namespace vfm::models
