// Group norm of each frame of a video, optionally followed by SiLU: the CUDA version of
// lib/ops/norm/frame_norm.h, which has the formulas.
//
// A frame may have a hundred million elements, so it is summed in kFrameNormChunks pieces, one
// block each. Moments are computed around a mean of some of the frame's elements. Groups of eight
// elements are summed in f32, everything else in double, and the pieces are combined as in Chan,
// Golub and LeVeque (1979). All orders are fixed, and a frame's result does not depend on the
// number of frames.
// Shape letters: T frames, C channels.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Number of pieces of a frame, as in lib/ops/norm/frame_norm_kernels.h.
inline constexpr int kFrameNormChunks = 64;

/// Device pointers of one call. `pixels` counts the pixels of one frame. Pointers need only the
/// alignment of an element. Pixels of a multiple of 16 bytes, aligned to 16 bytes, are read and
/// written 16 bytes at a time, with the same results up to rounding.
struct FrameNorm {
  Type type = Type::f32;  ///< of x, y, dy and dx
  std::int64_t frames = 0, pixels = 0, channels = 0;
  bool silu = false;
  float epsilon = 0;
  const void* x = nullptr;        ///< [T, pixels, C]
  float* moments = nullptr;       ///< [T, 2]: mean and variance
  const float* weight = nullptr;  ///< [C]
  const float* bias = nullptr;    ///< [C]
  void* y = nullptr;              ///< like x
  const void* dy = nullptr;       ///< like x
  void* dx = nullptr;             ///< like x
  float* dweight = nullptr;       ///< [C], added to
  float* dbias = nullptr;         ///< [C], added to
  /// Scratch: T * kFrameNormChunks * 4 floats, aligned to 8 bytes, for the moments;
  /// T * kFrameNormChunks * (2 C + 2) for backward.
  float* scratch = nullptr;
};

/// Return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for negative sizes,
/// more than 65,535 frames, or frames of 2^31 elements or more.
int frame_moments(const FrameNorm& call, CUstream_st* stream);  ///< writes moments
int frame_norm_forward(const FrameNorm& call, CUstream_st* stream);
int frame_norm_backward(const FrameNorm& call, CUstream_st* stream);

}  // namespace vfm::kernels
