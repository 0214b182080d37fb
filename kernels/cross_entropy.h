// Cross-entropy with a z-loss, and its gradient: the CUDA version of lib/ops/loss/cross_entropy.h,
// where the formulas are.
//
// One block a token: two passes over its logits, of which the second finds them in the cache and
// writes the gradient where they stood. Of a share of the vocabulary, one pass in each of two
// calls. Sums within a block are taken in a fixed order. Thread-safety: launches on the given
// stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Device pointers of one call; S tokens, V vocabulary.
struct CrossEntropy {
  std::int64_t tokens = 0, vocabulary = 0;  ///< vocabulary: of the share
  std::int64_t first = 0;                   ///< entry of the share's first column
  float z_loss = 0, scale = 0;
  float* logits = nullptr;                ///< [S, V]; for scale other than 0 the gradient, out
  const std::int32_t* targets = nullptr;  ///< [S], of all shares' entries, or negative: no target
  float* losses = nullptr;                ///< [S] out; 0 without target
  /// A log-sum-exp and a target's logit, or 0, of each token, [S, 2]: of this share, and of all,
  /// one after the other.
  float* part = nullptr;         ///< out
  const float* parts = nullptr;  ///< null: there is one share
  std::int64_t shares = 0;
};

/// Fills call.part, which cross_entropy() then takes in `parts`. Returns as that does.
int cross_entropy_part(const CrossEntropy& call, CUstream_st* stream);

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for negative
/// sizes, 2^31 tokens or more, or tokens without a vocabulary.
int cross_entropy(const CrossEntropy& call, CUstream_st* stream);

}  // namespace vfm::kernels
