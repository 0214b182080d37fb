// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/fp8.cuh"
#include "common/launch.cuh"
#include "common/modulate.cuh"
#include "common/pack.cuh"
#include "modulate_fp8.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = kModulateThreads;
// Tokens of a block of the second pass, and how many of them it loads at once. A thread has the
// same columns of all, so that it loads their modulation only where the row changes.
constexpr int kTokens = 16, kAtOnce = 4;

/// Four elements as modulate writes them, and quantize reads them.
template <class T>
__device__ __forceinline__ void stored4(float4 y, float (&v)[4]) {
  v[0] = y.x, v[1] = y.y, v[2] = y.z, v[3] = y.w;
  round_to<T>(v);
}

// One block a token.
template <class T, int kQuads, bool kWide>
__global__ void __launch_bounds__(kThreads) maxima_kernel(const ModulateFp8 c) {
  __shared__ float sums[kThreads / 32];
  __shared__ unsigned maxima[kThreads / 32];
  unsigned most = 0;
  modulate_token<T, kQuads, kWide>(c.forward, true, sums, [&](int, float4 y) {
    float v[4];
    stored4<T>(y, v);
#pragma unroll
    for (const float one : v)
      most = max(most, magnitude_bits(one));
  });
  most = max_of_block<kThreads>(most, maxima);
  if (threadIdx.x == 0) c.maxima[blockIdx.x] = most;
}

// A grid is tokens by columns.
template <class T>
__global__ void __launch_bounds__(kThreads) values_kernel(const ModulateFp8 c, int parts) {
  __shared__ unsigned shared[kThreads / 32];
  const Fp8Scale by = fp8_scale(max_of_parts<kThreads>(c.largest, parts, shared));
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *c.scale = by.scale;
  const ModulateForward& f = c.forward;
  const int at = static_cast<int>(blockIdx.y * kThreads + threadIdx.x) * 4;
  if (at >= f.width) return;
  const float* stream = f.stream ? f.stream : f.x;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kTokens;
  const int count = static_cast<int>(min(f.tokens - begin, std::int64_t{kTokens}));
  int row = -1;
  float4 shift{}, scale{};
  for (int first = 0; first < count; first += kAtOnce) {
    float4 v[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i < count) v[i] = load4(stream + (begin + first + i) * f.width + at);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= count) break;
      const std::int64_t token = begin + first + i;
      if (const int own = f.rows[token]; own != row) {
        row = own;
        const float* table = f.modulation + row * f.modulation_stride + at;
        shift = load4(table), scale = load4(table + f.width);
      }
      const float2 moments = *reinterpret_cast<const float2*>(f.moments + 2 * token);
      float y[4];
      stored4<T>(modulated4(v[i], moments.x, moments.y, shift, scale), y);
      *reinterpret_cast<unsigned*>(c.values + token * f.width + at) = quantize_4(y, by.inverse);
    }
  }
}

template <class T>
int dispatch(const ModulateFp8& c, cudaStream_t stream) {
  int status = fp8_code(values_kernel<T>);
  if (status != cudaSuccess) return status;
  const ModulateForward& f = c.forward;
  const dim3 tokens(static_cast<unsigned>(f.tokens));
  status = for_row(f.width, [&](auto cut) {
    return launch(maxima_kernel<T, cut.kQuads, cut.kWide>, tokens, kThreads, 0, stream, c);
  });
  if (status != cudaSuccess) return status;
  // Bits of a magnitude are the number's own.
  status = largest_magnitudes(Type::f32, c.maxima, f.tokens, c.largest, stream);
  if (status != cudaSuccess) return status;
  // One block at least, for the scale.
  const dim3 blocks(static_cast<unsigned>(f.tokens == 0 ? 1 : (f.tokens + kTokens - 1) / kTokens),
                    static_cast<unsigned>((f.width + kModulateStep - 1) / kModulateStep));
  return launch(values_kernel<T>, blocks, kThreads, 0, stream, c, quantize_parts(f.tokens));
}

}  // namespace

int modulate_fp8(const ModulateFp8& call, CUstream_st* stream) {
  if (!modulate_takes(call.forward)) return cudaErrorInvalidValue;
  return call.forward.type == Type::bf16 ? dispatch<__nv_bfloat16>(call, stream)
                                         : dispatch<float>(call, stream);
}

}  // namespace vfm::kernels
