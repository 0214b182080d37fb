// Root-mean-square norm over the last dimension and its gradients: the CUDA version of
// lib/ops/norm/rmsnorm.h.
//
//   forward   n = x r, r = 1 / sqrt(mean(x^2) + epsilon), y = n weight
//   backward  g = dy weight, dx = r (g - n mean(g n)), dweight = sum over the tokens of dy n
//
// r is not kept, as backward reads all of x anyway. Backward reads x and dy once and writes dx
// once. Each block sums dweight over a chunk of tokens, and a second kernel adds the chunks in a
// fixed order, so results do not depend on the device. An x whose square overflows f32 gives r = 0,
// as on the CPU. NaN and infinity in x make every result that depends on them NaN.
// Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
//
// All are f32; N tokens, any width D. Every pointer is aligned to 16 bytes. Both functions return a
// cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes below zero, more
// than 2^31 - 1 tokens, or unaligned pointers. Sizes of zero succeed.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct RmsnormForward {
  std::int64_t tokens = 0;
  int width = 0;
  float epsilon = 1e-6f;
  const float* x = nullptr;       ///< [N, D]
  const float* weight = nullptr;  ///< [D]
  float* y = nullptr;             ///< [N, D] output; may be x
};

int rmsnorm_forward(const RmsnormForward& call, CUstream_st* stream);

/// Number of tokens whose weight gradients are summed together.
inline constexpr std::int64_t kRmsnormChunk = 16;

struct RmsnormBackward {
  std::int64_t tokens = 0;
  int width = 0;
  float epsilon = 1e-6f;
  const float* x = nullptr;       ///< [N, D]
  const float* weight = nullptr;  ///< [D]
  const float* dy = nullptr;      ///< [N, D]
  float* dx = nullptr;            ///< [N, D] output; may be dy
  float* dweight = nullptr;       ///< [D] output, zeros without tokens; null if not wanted
  float* partial = nullptr;       ///< [ceil(N / kRmsnormChunk), D] scratch; unused without dweight
};

int rmsnorm_backward(const RmsnormBackward& call, CUstream_st* stream);

}  // namespace vfm::kernels
