// Scales of E4M3, and a check whether a kernel was compiled for a GPU with E4M3.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <ptx/fp8.cuh>

#include "../quantize.h"

namespace vfm::kernels {

/// Host code: returns cudaSuccess, or cudaErrorNotSupported if `kernel` runs as code for a GPU
/// without E4M3.
template <class Kernel>
cudaError_t fp8_code(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
  if (status != cudaSuccess) return status;
  return attributes.binaryVersion >= 89 ? cudaSuccess : cudaErrorNotSupported;
}

/// x is about scale * code; code = x * inverse, rounded.
struct Fp8Scale {
  float scale, inverse;
};

/// The bits of |x|. As whole numbers they are ordered as the values are, with infinity and NaN
/// above all.
__device__ __forceinline__ unsigned magnitude_bits(float x) {
  return __float_as_uint(x) & 0x7fffffffu;
}

/// Computes the scale from the bits of the largest magnitude; NaN for NaN or infinity.
__device__ __forceinline__ Fp8Scale fp8_scale(unsigned largest) {
  if (largest >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), __uint_as_float(0x7fc00000u)};
  const float range = fmaxf(__uint_as_float(largest), kFp8SmallestRange);
  return {range / kFp8Largest, kFp8Largest / range};
}

__device__ __forceinline__ unsigned max_of_warp(unsigned value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const unsigned other = __shfl_xor_sync(0xffffffffu, value, step);
    value = value > other ? value : other;
  }
  return value;
}

/// Returns the largest value of all threads, in every thread. kThreads is a multiple of 32;
/// `shared` has a number for each warp.
template <int kThreads>
__device__ __forceinline__ unsigned max_of_block(unsigned value,
                                                 unsigned (&shared)[kThreads / 32]) {
  value = max_of_warp(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kThreads / 32; ++warp)
    value = value > shared[warp] ? value : shared[warp];
  return value;
}

/// Returns the largest of the results of largest_magnitudes(), in every thread.
template <int kThreads>
__device__ __forceinline__ unsigned max_of_parts(const std::uint32_t* largest, int parts,
                                                 unsigned (&shared)[kThreads / 32]) {
  unsigned most = 0;
  for (int part = static_cast<int>(threadIdx.x); part < parts; part += kThreads)
    most = max(most, largest[part]);
  return max_of_block<kThreads>(most, shared);
}

/// Converts four elements to four bytes.
__device__ __forceinline__ unsigned quantize_4(const float (&v)[4], float inverse) {
  return pack_e4m3(v[0] * inverse, v[1] * inverse) | pack_e4m3(v[2] * inverse, v[3] * inverse)
                                                         << 16;
}

/// Converts sixteen elements to sixteen bytes.
__device__ __forceinline__ uint4 quantize_16(const float (&v)[16], float inverse) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    words[i] = pack_e4m3(v[4 * i] * inverse, v[4 * i + 1] * inverse) |
               pack_e4m3(v[4 * i + 2] * inverse, v[4 * i + 3] * inverse) << 16;
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace vfm::kernels
