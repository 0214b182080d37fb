// The kernels of attention in video tokenizers: within frames, and along time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

// Within frames: softmax over rows of scores.

// p = softmax(scale * s) of each row of `columns` elements; p has `type`.
VFM_ISA_KERNEL(void, softmax_rows, const float* s, DType type, void* p, std::int64_t rows,
               std::int64_t columns, float scale)
// ds = scale * p (dp - sum of p dp over the row). ds may overwrite dp; p and ds have `type`.
VFM_ISA_KERNEL(void, softmax_rows_backward, DType type, const void* p, const float* dp, void* ds,
               std::int64_t rows, std::int64_t columns, float scale)

// Along time.

/// Plain pointers of one call. T is the element type `type`.
struct TimeAttentionArgs {
  DType type = DType::f32;
  std::int64_t queries = 0, frames = 0, pixels = 0, channels = 0;  // T, L, N, C
  float scale = 0;
  const void* q = nullptr;              // [T, N, C] T
  const void* const* keys = nullptr;    // [L]: address of [N, C] of each frame
  const void* const* values = nullptr;  // [L]
  void* out = nullptr;                  // like q
  // Backward only, where L = T: like q.
  const void* dout = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float* scratch = nullptr;  // scratch_stride floats for each thread; CPU only
  std::int64_t scratch_stride = 0;
};

/// Floats of scratch for each thread.
inline std::int64_t time_attention_scratch(const TimeAttentionArgs& a, bool backward) {
  return backward ? 2 * a.frames + 2 * a.frames * a.channels : a.frames + a.channels;
}

/// Number of pixels that the backward pass on a GPU processes at a time. Each needs two matrices
/// [T, T] of floats for its weights.
inline std::int64_t time_attention_pixels_at_once(const TimeAttentionArgs& a) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;  // floats
  return std::clamp<std::int64_t>(kMost / 2 / (a.queries * a.queries), 1, a.pixels);
}

VFM_ISA_KERNEL(void, time_attention_forward, const TimeAttentionArgs& args)
VFM_ISA_KERNEL(void, time_attention_backward, const TimeAttentionArgs& args)

}  // namespace vfm::ops
