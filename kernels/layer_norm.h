// Layer norm over the last dimension and its gradients: the CUDA version of
// lib/ops/norm/layer_norm.h.
//
//   forward   n = (x - mean(x)) r, r = 1 / sqrt(var(x) + epsilon), y = n weight + bias
//   backward  g = dy weight, dx = r (g - mean(g) - n mean(g n)),
//             dweight = sum over the tokens of dy n, dbias = sum of dy
//
// Backward computes each token's five numbers first, then dx and the sums by columns: over chunks
// of tokens, which are added in a fixed order.
// Sums are over distances: first from the row's first number, which gives an approximate mean, then
// from that mean, which gives its correction and the variance. A large mean therefore costs no
// digits, and a row of equal numbers gives exactly the bias. The order of a sum is fixed and
// depends on the width and the alignment of the pointers. A variance that overflows f32 gives the
// bias. NaN or infinity in x makes its row NaN.
// Sources: Ba, Kiros and Hinton, "Layer normalization" (2016); Chan, Golub and LeVeque, "Algorithms
// for computing the sample variance" (1983).
//
// All are f32; N tokens, any width D. Pointers need only the alignment of a float. If all are
// aligned to 16 bytes and D is a multiple of 4 and at most 4,096, a row is read once, 16 bytes at a
// time by the forward pass. Both functions return a cudaError_t: 0 on success, the launch's error,
// or 1 (invalid value) for sizes below zero or more than 2^31 - 1 tokens. Sizes of zero succeed.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct LayerNorm {
  std::int64_t tokens = 0;
  int width = 0;
  float epsilon = 1e-6f;
  const float* x = nullptr;       ///< [N, D]
  const float* weight = nullptr;  ///< [D]
  const float* bias = nullptr;    ///< [D]
  float* y = nullptr;             ///< [N, D] output; may be x
};

int layer_norm(const LayerNorm& call, CUstream_st* stream);

/// Number of tokens whose gradients of weight and bias are summed together, and numbers of a token.
inline constexpr std::int64_t kLayerNormChunk = 32, kLayerNormNumbers = 5;

struct LayerNormBackward {
  std::int64_t tokens = 0;
  int width = 0;
  float epsilon = 1e-6f;
  const float* x = nullptr;       ///< [N, D]
  const float* weight = nullptr;  ///< [D]
  const float* dy = nullptr;      ///< [N, D]
  float* dx = nullptr;            ///< [N, D] output; may be dy
  float* dboth = nullptr;         ///< [2, D] output: dweight, dbias; zeros without tokens; or null
  float* numbers = nullptr;       ///< [N, kLayerNormNumbers] scratch
  float* partial = nullptr;  ///< [ceil(N / kLayerNormChunk), 2, D] scratch; unused without dboth
};

int layer_norm_backward(const LayerNormBackward& call, CUstream_st* stream);

}  // namespace vfm::kernels
