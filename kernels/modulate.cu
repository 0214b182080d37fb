// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "modulate.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256, kStep = kThreads * 4;

__device__ __forceinline__ float4 fma4(float4 a, float4 b, float4 c) {
  return {a.x * b.x + c.x, a.y * b.y + c.y, a.z * b.z + c.z, a.w * b.w + c.w};
}
__device__ __forceinline__ float sum4(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}

__device__ __forceinline__ float deviation4(float4 v, float mean) {
  const float4 d = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
  return sum4({d.x * d.x, d.y * d.y, d.z * d.z, d.w * d.w});
}

// A thread's part of a row: kQuads groups of four elements, kStep apart, or as many as there are.
// Everything is loaded before anything is stored: the stream may be x, so the compiler cannot know
// that a load need not wait for a store.
template <class T, int kQuads>
struct Part {
  const ModulateForward& c;
  std::int64_t token;
  int row;
  float4 v[kQuads];

  template <class F>
  __device__ __forceinline__ void each(int first, const F& f) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      if (const int at = first + i * kStep; at < c.width) f(i, at);
  }
  __device__ __forceinline__ void load(int first, const float* from) {
    each(first, [&](int i, int at) { v[i] = load4(from + token * c.width + at); });
  }

  // x + gate * branch + extra, into the stream where there is one; returns the sum.
  __device__ __forceinline__ float add(int first) {
    load(first, c.x);
    if (c.branch) {
      const float* gate = c.gate + row * c.gate_stride;
      const T* branch = static_cast<const T*>(c.branch) + token * c.width;
      each(first, [&](int i, int at) { v[i] = fma4(load4(gate + at), load4(branch + at), v[i]); });
    }
    if (c.extra) {
      const float* extra = c.extra + token * c.width;
      each(first, [&](int i, int at) { v[i] = fma4(load4(extra + at), {1, 1, 1, 1}, v[i]); });
    }
    float sum = 0;
    each(first, [&](int i, int at) {
      if (c.stream) store4(c.stream + token * c.width + at, v[i]);
      sum += sum4(v[i]);
    });
    return sum;
  }

  __device__ __forceinline__ float squares(int first, float mean) {
    float sum = 0;
    each(first, [&](int i, int) { sum += deviation4(v[i], mean); });
    return sum;
  }

  // Its tables are loaded for three or four groups at once: for six there are not registers enough.
  __device__ __forceinline__ void modulate(int first, float mean, float rstd) {
    constexpr int kAtOnce = kQuads == 6 ? 3 : kQuads;
    const float* table = c.modulation + row * c.modulation_stride;
    float4 shift[kAtOnce], scale[kAtOnce];
#pragma unroll
    for (int begin = 0; begin < kQuads; begin += kAtOnce) {
      const auto each_now = [&](const auto& f) {
        each(first, [&](int i, int at) {
          if (i >= begin && i < begin + kAtOnce) f(i, i - begin, at);
        });
      };
      each_now([&](int, int j, int at) {
        shift[j] = load4(table + at);
        scale[j] = load4(table + c.width + at);
      });
      each_now([&](int i, int j, int at) {
        const float4 n = {(v[i].x - mean) * rstd, (v[i].y - mean) * rstd, (v[i].z - mean) * rstd,
                          (v[i].w - mean) * rstd};
        const float4 k = {1 + scale[j].x, 1 + scale[j].y, 1 + scale[j].z, 1 + scale[j].w};
        store4(static_cast<T*>(c.normed) + token * c.width + at, fma4(n, k, shift[j]));
      });
    }
  }
};

// One block a token. The row stays in the threads' registers, kQuads groups each. If it is too wide
// for that, kWide, each thread has several parts, and reads them again from the stream.
template <class T, int kQuads, bool kWide>
__global__ void __launch_bounds__(kThreads) modulate_kernel(const ModulateForward c) {
  __shared__ float shared[kThreads / 32];
  const std::int64_t token = blockIdx.x;
  Part<T, kQuads> part{c, token, c.rows[token], {}};
  const auto each_part = [&](const auto& f) {
    int first = static_cast<int>(threadIdx.x) * 4;
    do
      f(first);
    while (kWide && (first += kQuads * kStep) < c.width);
  };
  float sum = 0, squares = 0;
  each_part([&](int first) { sum += part.add(first); });
  if (c.normed == nullptr) return;
  const float mean =
      c.centred ? block_sum<kThreads>(sum, shared) / static_cast<float>(c.width) : 0.f;
  // Around the mean, not as a difference of squares, which would cancel.
  each_part([&](int first) {
    if (kWide) part.load(first, c.stream ? c.stream : c.x);
    squares += part.squares(first, mean);
  });
  const float variance = block_sum<kThreads>(squares, shared) / static_cast<float>(c.width);
  const float rstd = 1.f / sqrtf(variance + c.epsilon);
  if (threadIdx.x == 0) {
    c.moments[2 * token] = mean;
    c.moments[2 * token + 1] = rstd;
  }
  each_part([&](int first) {
    if (kWide) part.load(first, c.stream ? c.stream : c.x);
    part.modulate(first, mean, rstd);
  });
}

template <class T>
int dispatch(const ModulateForward& c, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(c.tokens));
  const int quads = (c.width + kStep - 1) / kStep;
  const auto kernel = quads <= 1   ? modulate_kernel<T, 1, false>
                      : quads <= 2 ? modulate_kernel<T, 2, false>
                      : quads <= 4 ? modulate_kernel<T, 4, false>
                      : quads <= 6 ? modulate_kernel<T, 6, false>
                                   : modulate_kernel<T, 4, true>;
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
