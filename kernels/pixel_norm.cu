// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "common/reduce.cuh"
#include "pixel_norm.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kPixels = kThreads / 32;  // of a block, a warp each

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) pixel_norm_kernel(const PixelNorm c) {
  constexpr int P = kPack<T>;
  const std::int64_t pixel = std::int64_t{blockIdx.x} * kPixels + threadIdx.x / 32;
  if (pixel >= c.pixels) return;
  const T* const x = static_cast<const T*>(c.x) + pixel * c.channels;
  T* const y = static_cast<T*>(c.y) + pixel * c.channels;
  const int channels = static_cast<int>(c.channels), first = static_cast<int>(threadIdx.x % 32) * P;
  float v[P], sum = 0;
  for (int at = first; at < channels; at += 32 * P) {
    unpack(load_pack<T, kVector>(x + at, min(P, channels - at)), v);
#pragma unroll
    for (int i = 0; i < P; ++i)
      sum += v[i] * v[i];
  }
  const float length = sqrtf(warp_sum(sum));
  const float r = sqrtf(static_cast<float>(channels)) / (length < 1e-12f ? 1e-12f : length);
  for (int at = first; at < channels; at += 32 * P) {
    float w[P];
    const int count = min(P, channels - at);
    unpack(load_pack<T, kVector>(x + at, count), v);
    load_floats<kVector>(c.weight + at, count, w);
#pragma unroll
    for (int i = 0; i < P; ++i) {
      const float n = v[i] * r * w[i];
      v[i] = c.silu ? n * __fdividef(1.f, 1.f + __expf(-n)) : n;
    }
    store_pack<T, kVector>(y + at, pack(v), count);
  }
}

template <class T>
int run(const PixelNorm& c, unsigned blocks, cudaStream_t stream) {
  const bool vector =
      aligned_to_16(c.x, c.y) && aligned_to_16(c.weight) && c.channels % kPack<T> == 0;
  return launch(vector ? pixel_norm_kernel<T, true> : pixel_norm_kernel<T, false>, dim3(blocks),
                kThreads, 0, stream, c);
}

}  // namespace

int pixel_norm(const PixelNorm& call, CUstream_st* stream) {
  const std::int64_t blocks = (call.pixels + kPixels - 1) / kPixels;
  if (call.pixels < 0 || call.channels < 0 || call.channels > 0x7fffffff - 32 * kPack<Bf16> ||
      blocks > 0x7fffffff)
    return cudaErrorInvalidValue;
  if (call.pixels == 0 || call.channels == 0) return cudaSuccess;
  return call.type == Type::bf16 ? run<Bf16>(call, static_cast<unsigned>(blocks), stream)
                                 : run<float>(call, static_cast<unsigned>(blocks), stream);
}

}  // namespace vfm::kernels
