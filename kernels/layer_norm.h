// Layer norm over the last dimension: the CUDA version of lib/ops/norm/layer_norm.h.
//
//   y = (x - mean(x)) / sqrt(var(x) + epsilon) weight + bias
//
// Sums are of distances, first from the row's first number, which gives about the mean, then from
// that, which gives what it is off and the variance; so a large mean costs no digits, and a row of
// equal numbers gives the bias, to the bit. They are added in a fixed order, which depends on the
// width and on how the pointers are aligned. A variance that overflows f32 gives the bias; NaN and
// infinity in x make their row NaN.
// Sources: Ba, Kiros and Hinton, "Layer normalization" (2016); Chan, Golub and LeVeque, "Algorithms
// for computing the sample variance" (1983).
//
// All f32; N tokens, D width, any. Pointers need no more than the alignment of a float; with all of
// them aligned to 16 bytes, D a multiple of 4 and at most 4,096, a row is read once, 16 bytes at a
// time. Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes
// below zero or more than 2^31 - 1 tokens. Sizes of zero are a success.
// Thread-safety: launches on the given stream; keeps nothing.
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
  float* y = nullptr;             ///< [N, D] out; may be x
};

int layer_norm(const LayerNorm& call, CUstream_st* stream);

}  // namespace vfm::kernels
