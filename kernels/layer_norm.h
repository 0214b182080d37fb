// Layer norm over the last dimension: the CUDA version of lib/ops/norm/layer_norm.h.
//
//   y = (x - mean(x)) / sqrt(var(x) + epsilon) weight + bias
//
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
// time. Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes
// below zero or more than 2^31 - 1 tokens. Sizes of zero succeed.
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

}  // namespace vfm::kernels
