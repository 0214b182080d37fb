// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "modulate.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float4 fma4(float4 a, float4 b, float4 c) {
  return {a.x * b.x + c.x, a.y * b.y + c.y, a.z * b.z + c.z, a.w * b.w + c.w};
}
__device__ __forceinline__ float sum4(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}

// x + gate * branch + extra, four elements from `at`.
template <class T>
__device__ __forceinline__ float4 residual(const ModulateForward& c, std::int64_t token, int row,
                                           int at) {
  const std::int64_t place = token * c.width + at;
  float4 v = load4(c.x + place);
  if (c.branch)
    v = fma4(load4(c.gate + row * c.gate_stride + at),
             load4(static_cast<const T*>(c.branch) + place), v);
  if (c.extra) v = fma4(load4(c.extra + place), {1, 1, 1, 1}, v);
  return v;
}

template <class T>
__device__ __forceinline__ void finish(const ModulateForward& c, std::int64_t token, int row,
                                       int at, float4 v, float mean, float rstd) {
  const float* shift = c.modulation + row * c.modulation_stride + at;
  const float4 s = load4(shift), k = load4(shift + c.width);
  const float4 n = {(v.x - mean) * rstd, (v.y - mean) * rstd, (v.z - mean) * rstd,
                    (v.w - mean) * rstd};
  store4(static_cast<T*>(c.normed) + token * c.width + at,
         fma4(n, {1 + k.x, 1 + k.y, 1 + k.z, 1 + k.w}, s));
}

__device__ __forceinline__ float deviation4(float4 v, float mean) {
  const float4 d = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
  return sum4({d.x * d.x, d.y * d.y, d.z * d.z, d.w * d.w});
}

// One block a token. kQuads groups of four elements stay in each thread's registers; 0: the row is
// too wide for that, and is read again from the stream.
template <class T, int kQuads>
__global__ void __launch_bounds__(kThreads) modulate_kernel(const ModulateForward c) {
  __shared__ float shared[kThreads / 32];
  const std::int64_t token = blockIdx.x;
  const int row = c.rows[token];
  const int first = static_cast<int>(threadIdx.x) * 4;
  constexpr int kStep = kThreads * 4;
  float* const stream = c.stream ? c.stream + token * c.width : nullptr;
  const float* const summed = stream ? stream : c.x + token * c.width;
  float4 kept[kQuads > 0 ? kQuads : 1];
  float sum = 0, squares = 0;
  if constexpr (kQuads > 0) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = first + i * kStep;
      kept[i] = at < c.width ? residual<T>(c, token, row, at) : float4{0, 0, 0, 0};
      if (stream && at < c.width) store4(stream + at, kept[i]);
      sum += sum4(kept[i]);
    }
  } else {
    for (int at = first; at < c.width; at += kStep) {
      const float4 v = residual<T>(c, token, row, at);
      if (stream) store4(stream + at, v);
      sum += sum4(v);
    }
  }
  const float mean =
      c.centred ? block_sum<kThreads>(sum, shared) / static_cast<float>(c.width) : 0.f;
  // Around the mean, not as a difference of squares, which would cancel.
  if constexpr (kQuads > 0) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      if (first + i * kStep < c.width) squares += deviation4(kept[i], mean);
  } else {
    for (int at = first; at < c.width; at += kStep)
      squares += deviation4(load4(summed + at), mean);
  }
  const float variance = block_sum<kThreads>(squares, shared) / static_cast<float>(c.width);
  const float rstd = 1.f / sqrtf(variance + c.epsilon);
  if (threadIdx.x == 0) {
    c.moments[2 * token] = mean;
    c.moments[2 * token + 1] = rstd;
  }
  if constexpr (kQuads > 0) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      if (first + i * kStep < c.width)
        finish<T>(c, token, row, first + i * kStep, kept[i], mean, rstd);
  } else {
    for (int at = first; at < c.width; at += kStep)
      finish<T>(c, token, row, at, load4(summed + at), mean, rstd);
  }
}

template <class T>
int dispatch(const ModulateForward& c, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(c.tokens));
  const int quads = (c.width + kThreads * 4 - 1) / (kThreads * 4);
  const auto kernel = quads <= 1   ? modulate_kernel<T, 1>
                      : quads <= 2 ? modulate_kernel<T, 2>
                      : quads <= 4 ? modulate_kernel<T, 4>
                      : quads <= 6 ? modulate_kernel<T, 6>
                                   : modulate_kernel<T, 0>;
  return launch(kernel, blocks, kThreads, 0, stream, c);
}

}  // namespace

int modulate_forward(const ModulateForward& call, CUstream_st* stream) {
  if (call.tokens == 0) return cudaSuccess;
  if (call.width <= 0 || call.width % 4 != 0 || call.tokens < 0 || call.tokens > 0x7fffffff)
    return cudaErrorInvalidValue;
  return call.type == Type::bf16 ? dispatch<__nv_bfloat16>(call, stream)
                                 : dispatch<float>(call, stream);
}

}  // namespace vfm::kernels
