// Sums over the threads of a block, in an order that depends on nothing. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

/// The sum over all threads, in every thread; T is float or double. kThreads is a multiple of 32,
/// at most 1,024. May be called again at once: `shared` (kThreads / 32 numbers) is free when it
/// returns.
template <int kThreads, class T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
  constexpr int kWarps = kThreads / 32;
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T total = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp)
    total += shared[warp];
  __syncthreads();
  return total;
}

}  // namespace vfm::kernels
