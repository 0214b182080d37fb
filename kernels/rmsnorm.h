// Root-mean-square norm over the last dimension and its gradients: the CUDA version of
// lib/ops/norm/rmsnorm.h.
//
//   forward   n = x r, r = 1 / sqrt(mean(x^2) + epsilon), y = n weight
//   backward  g = dy weight, dx = r (g - n mean(g n)), dweight = sum over the tokens of dy n
//
// r is not kept: backward reads all of x anyway. Backward reads x and dy once and writes dx once,
// while each block sums dweight over a chunk of tokens; a second kernel adds the chunks in a fixed
// order, so that results do not depend on the device or on chance. An x whose square overflows f32
// gives r = 0, as on the CPU; NaN and infinity in x make NaN of what they enter.
// Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
//
// All f32; N tokens, D width, any. Every pointer is aligned to 16 bytes. Both return a cudaError_t:
// 0, or what is wrong with the launch; 1 (invalid value) for sizes below zero, more than 2^31 - 1
// tokens, or pointers that are not aligned. Sizes of zero are a success.
// Thread-safety: launches on the given stream; keeps nothing.
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
  float* y = nullptr;             ///< [N, D] out; may be x
};

int rmsnorm_forward(const RmsnormForward& call, CUstream_st* stream);

/// Tokens whose weight gradients are summed together.
inline constexpr std::int64_t kRmsnormChunk = 16;

struct RmsnormBackward {
  std::int64_t tokens = 0;
  int width = 0;
  float epsilon = 1e-6f;
  const float* x = nullptr;       ///< [N, D]
  const float* weight = nullptr;  ///< [D]
  const float* dy = nullptr;      ///< [N, D]
  float* dx = nullptr;            ///< [N, D] out; may be dy
  float* dweight = nullptr;       ///< [D] out, zeros without tokens; or null: not wanted
  float* partial = nullptr;       ///< [ceil(N / kRmsnormChunk), D] scratch; unused without dweight
};

int rmsnorm_backward(const RmsnormBackward& call, CUstream_st* stream);

}  // namespace vfm::kernels
