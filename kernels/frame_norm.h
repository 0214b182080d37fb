// Group norm of each frame of a video, and SiLU after it: the CUDA version of
// lib/ops/norm/frame_norm.h, where the formulas are.
//
// Sums over a frame, which may have a hundred million elements, are made of kFrameNormChunks
// pieces, each by one block. Moments: around a mean of some of the frame's elements, eight in f32,
// all in double, then pieces are joined as Chan, Golub and LeVeque (1979) do. Every order is fixed,
// and a frame's result does not depend on how many come with it. Shape letters: T frames, C
// channels. Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Pieces of a frame, as lib/ops/norm/frame_norm_kernels.h has them.
inline constexpr int kFrameNormChunks = 64;

/// Device pointers of one call. `pixels` are those of a frame. Pointers need no more than the
/// alignment of an element; pixels of whole 16 bytes, aligned so, are read and written 16 bytes at
/// a time, with the same results up to rounding.
struct FrameNorm {
  Type type = Type::f32;  ///< of x, y, dy and dx
  std::int64_t frames = 0, pixels = 0, channels = 0;
  bool silu = false;
  float epsilon = 0;
  const void* x = nullptr;        ///< [T, pixels, C]
  float* moments = nullptr;       ///< [T, 2]: mean and variance
  const float* weight = nullptr;  ///< [C]
  const float* bias = nullptr;    ///< [C]
  void* y = nullptr;              ///< as x
  const void* dy = nullptr;       ///< as x
  void* dx = nullptr;             ///< as x
  float* dweight = nullptr;       ///< [C], added to
  float* dbias = nullptr;         ///< [C], added to
  /// Of T * kFrameNormChunks * 4 floats, aligned to 8 bytes, for the moments; of T *
  /// kFrameNormChunks * (2 C + 2) for backward.
  float* scratch = nullptr;
};

/// Return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for negative sizes,
/// more than 65,535 frames, or frames of 2^31 elements or more.
int frame_moments(const FrameNorm& call, CUstream_st* stream);  ///< writes moments
int frame_norm_forward(const FrameNorm& call, CUstream_st* stream);
int frame_norm_backward(const FrameNorm& call, CUstream_st* stream);

}  // namespace vfm::kernels
