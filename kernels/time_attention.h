// Attention along time with one wide head: the CUDA version of lib/ops/attention/video_attention.h,
// which has the formula. A warp computes one query of one pixel, and in backward also one key of
// one pixel.
//
// Matrix products would not help: a pixel has only as many queries as there are frames, so reading
// takes longer than arithmetic. Every order is fixed, and keys in several pieces give the same bits
// as in one.
// Shape letters: T frames of the queries, L >= T frames of the keys, N pixels, C channels.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The most channels.
inline constexpr int kTimeAttentionChannels = 1024;

/// Device pointers of one call; the two lists of pointers are on the device too. If `vector`,
/// channels are read 16 bytes at a time, with the same results up to rounding; the caller must set
/// it.
struct TimeAttention {
  Type type = Type::f32;  ///< of everything but p and ds
  bool vector = false;    ///< C and all pointers and frames: multiples of 16 bytes
  std::int64_t queries = 0, frames = 0, pixels = 0;  ///< T, L, N
  int channels = 0;                                  ///< C
  float scale = 0;
  const void* q = nullptr;              ///< [T, N, C]
  const void* const* keys = nullptr;    ///< [L]: address of [N, C] of each frame
  const void* const* values = nullptr;  ///< [L]
  void* out = nullptr;                  ///< [T, N, C]
  // Backward only, where L = T. One call computes pixels first_pixel to
  // first_pixel + some_pixels - 1.
  std::int64_t first_pixel = 0, some_pixels = 0;
  const void* dout = nullptr;                        ///< [T, N, C]
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;  ///< [T, N, C]
  float *p = nullptr, *ds = nullptr;                 ///< scratch of [some_pixels, T, T] each
};

/// Return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes below
/// zero, too many channels, or fewer keys than queries.
int time_attention_forward(const TimeAttention& call, CUstream_st* stream);
int time_attention_backward(const TimeAttention& call, CUstream_st* stream);

}  // namespace vfm::kernels
