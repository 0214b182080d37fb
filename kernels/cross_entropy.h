// Cross-entropy with a z-loss, and its gradient: the CUDA version of lib/ops/loss/cross_entropy.h,
// which has the formulas.
//
// One block computes a token in two passes over its logits. The second pass finds them in the cache
// and overwrites them with the gradient. With a share of the vocabulary, each of two calls makes
// one pass. Sums within a block have a fixed order.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Device pointers of one call; S tokens, V vocabulary.
struct CrossEntropy {
  std::int64_t tokens = 0, vocabulary = 0;  ///< vocabulary: columns of the share
  std::int64_t first = 0;                   ///< entry of the share's first column
  float z_loss = 0, scale = 0;
  float* logits = nullptr;                ///< [S, V]; overwritten by the gradient unless scale is 0
  const std::int32_t* targets = nullptr;  ///< [S], vocabulary entries; negative: no target
  float* losses = nullptr;                ///< [S] output; 0 without target
  /// [S, 2]: log-sum-exp and target's logit (0 if absent) of each token. `part` is of this share,
  /// `parts` has all shares one after the other.
  float* part = nullptr;         ///< output
  const float* parts = nullptr;  ///< null if there is one share
  std::int64_t shares = 0;
};

/// Writes call.part, which the caller gathers into `parts` for cross_entropy(). Returns like
/// cross_entropy().
int cross_entropy_part(const CrossEntropy& call, CUstream_st* stream);

/// Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for negative
/// sizes, 2^31 tokens or more, or tokens without a vocabulary.
int cross_entropy(const CrossEntropy& call, CUstream_st* stream);

}  // namespace vfm::kernels
