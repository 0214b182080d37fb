// The kernels behind frame_norm.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

/// Mean and sum of squared deviations of some elements.
struct ChunkSums {
  double mean = 0, squares = 0;
};

/// Number of pieces in which a frame is summed, whatever the number of threads.
inline constexpr std::int64_t kFrameNormChunks = 64;

/// Plain pointers of one call. T is the element type `type`.
struct FrameNormArgs {
  std::int64_t frames = 0, pixels = 0, channels = 0;  // pixels: of one frame
  DType type = DType::f32;
  bool silu = false;
  float epsilon = 0;
  const void* x = nullptr;        // [T, pixels, C] T
  float* moments = nullptr;       // [T, 2]
  const float* weight = nullptr;  // [C]
  const float* bias = nullptr;    // [C]
  void* y = nullptr;              // like x
  const void* dy = nullptr;       // backward only, like x
  void* dx = nullptr;             // like x
  float* dweight = nullptr;       // [C], added to
  float* dbias = nullptr;         // [C], added to
  float* scratch = nullptr;       // kFrameNormChunks * (2 C + 2) floats: backward, CPU
  // For a part of each frame: the pixels of a whole frame, and the frame's pixel with
  // which x begins.
  std::int64_t whole = 0, begin = 0;
  std::int64_t chunk = 0, chunks = 0;  // the chunks to sum: the first, and their number
  ChunkSums* sums = nullptr;           // [T, chunks]
};

/// Floats of scratch of the GPU versions for each frame.
inline std::int64_t frame_norm_gpu_sums(const FrameNormArgs& a, bool backward) {
  return kFrameNormChunks * (backward ? 2 * a.channels + 2 : 4);
}

VFM_ISA_KERNEL(void, frame_moments, const FrameNormArgs& args)
/// Computes the sums of chunks, each of which is whole in x; and the moments from the sums of all
/// chunks.
VFM_CPU_KERNEL(void, frame_chunk_sums, const FrameNormArgs& args)
VFM_CPU_KERNEL(void, join_frame_chunks, const FrameNormArgs& args)
VFM_ISA_KERNEL(void, frame_norm_forward, const FrameNormArgs& args)
VFM_ISA_KERNEL(void, frame_norm_backward, const FrameNormArgs& args)

}  // namespace vfm::ops
