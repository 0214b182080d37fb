// Attention along time with one wide head: the CUDA version of lib/ops/attention/time_attention.h,
// where the formula is. A warp has one query of one pixel; for backward also one key of one
// pixel.
//
// No product of matrices: a pixel has as many queries as there are frames, a handful, and what is
// read takes longer than the arithmetic. Every order is fixed, and keys in pieces give the same
// bits as keys in one.
// Shape letters: T frames of the queries, L >= T of the keys, N pixels, C channels.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The most channels.
inline constexpr int kTimeAttentionChannels = 1024;

/// Device pointers of one call; the two lists of pointers are on the device too. Frames of whole
/// 16 bytes of channels, aligned so, are read 16 bytes at a time (`vector`, which the caller finds
/// out), with the same results up to rounding.
struct TimeAttention {
  Type type = Type::f32;  ///< of everything but p and ds
  bool vector = false;    ///< C is in whole 16 bytes, and every pointer and frame aligned so
  std::int64_t queries = 0, frames = 0, pixels = 0;  ///< T, L, N
  int channels = 0;                                  ///< C
  float scale = 0;
  const void* q = nullptr;              ///< [T, N, C]
  const void* const* keys = nullptr;    ///< [L]: where each frame's [N, C] begins
  const void* const* values = nullptr;  ///< [L]
  void* out = nullptr;                  ///< [T, N, C]
  // Backward only, where L = T. Pixels first_pixel to first_pixel + some_pixels in one call.
  std::int64_t first_pixel = 0, some_pixels = 0;
  const void* dout = nullptr;                        ///< [T, N, C]
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;  ///< [T, N, C]
  float *p = nullptr, *ds = nullptr;                 ///< scratch of [some_pixels, T, T] each
};

/// Return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes below
/// zero, too many channels, or fewer keys than queries.
int time_attention_forward(const TimeAttention& call, CUstream_st* stream);
int time_attention_backward(const TimeAttention& call, CUstream_st* stream);

}  // namespace vfm::kernels
