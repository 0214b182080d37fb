// Adds the rows of a small matrix, the sums of chunks of tokens, in a fixed order. Device code
// only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::kernels {

/// out[column] = the sum of partial [chunks, width] over the chunks. Blocks of kThreads threads,
/// each for 32 columns: its warps take the chunks in turn, then the first adds the warps' sums.
template <int kThreads>
__device__ __forceinline__ void add_chunks(const float* partial, std::int64_t chunks,
                                           std::int64_t width, float* out) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float sums[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + lane;
  float sum = 0;
  if (column < width) {
#pragma unroll 8
    for (std::int64_t chunk = warp; chunk < chunks; chunk += kWarps)
      sum += partial[chunk * width + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= width) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i)
    total += sums[i][lane];
  out[column] = total;
}

}  // namespace vfm::kernels
