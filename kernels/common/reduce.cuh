// Sums and maxima over the threads of a warp or a block, in a fixed order. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

/// Returns the sum over a warp, in every lane; T is float or double.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/// Returns the largest value of a warp, in every lane. A NaN may be lost.
__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

/// Returns the sum over all threads, in every thread; T is float or double. kThreads is a multiple
/// of 32, at most 1,024. `shared` has kThreads / 32 numbers and is free when the function returns,
/// so it may be called again at once.
template <int kThreads, class T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T total = 0;
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp)
    total += shared[warp];
  __syncthreads();
  return total;
}

/// Returns the largest value of all threads, in every thread. A NaN may be lost. Arguments as for
/// block_sum.
template <int kThreads>
__device__ __forceinline__ float block_max(float value, float* shared) {
  value = warp_max(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = shared[0];
#pragma unroll
  for (int warp = 1; warp < kThreads / 32; ++warp)
    largest = fmaxf(largest, shared[warp]);
  __syncthreads();
  return largest;
}

}  // namespace vfm::kernels
