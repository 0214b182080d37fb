// Bound by reading keys and values; heads that share them find them in the cache. A warp makes the
// scores of four keys together, so that their sums over the lanes wait beside each other.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "common/attention.cuh"
#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "newest_query.h"

namespace vfm::kernels {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps, kWidest = 256, kKeys = 4;
constexpr int kParts = kWidest / 128;  // of four elements: what a lane has of a row

struct Shared {
  float top[kWarps], sum[kWarps];
  float4 out[kWarps][kWidest / 4];
};

// What a warp has seen.
struct Seen {
  float top = -INFINITY, sum = 0;
  float4 out[kParts] = {};
};

__device__ __forceinline__ float4 scaled(float4 v, float by) {
  return {v.x * by, v.y * by, v.z * by, v.w * by};
}

__device__ __forceinline__ float4 plus(float4 a, float weight, float4 b) {
  return {fmaf(weight, b.x, a.x), fmaf(weight, b.y, a.y), fmaf(weight, b.z, a.z),
          fmaf(weight, b.w, a.w)};
}

// kParts parts of a row: four elements at 4 lane, and at 128 further on.
template <bool kQuads, class T>
__device__ __forceinline__ void load_row(float4 (&row)[kParts], const T* from, int width,
                                         int lane) {
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    const int d = 4 * lane + 128 * i;
    row[i] = load_part<kQuads>(from + d, width - d);
  }
}

// Keys key .. key + kKeys - 1, of which there are those before `end`.
template <bool kQuads, class T>
__device__ __forceinline__ void see_keys(Seen& seen, const float4 (&query)[kParts], const T* keys,
                                         std::int64_t stride, std::int64_t value_from,
                                         std::int64_t key, std::int64_t end, int width, int lane) {
  float scores[kKeys], highest = seen.top;
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    float4 row[kParts];
    load_row<kQuads>(row, keys + min(key + j, end - 1) * stride, width, lane);
    scores[j] = 0;
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      scores[j] += dot4(query[i], row[i]);
  }
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    scores[j] = key + j < end ? warp_sum(scores[j]) : -INFINITY;
    highest = fmaxf(highest, scores[j]);
  }
  // Where nothing but minus infinity was seen, there is no maximum to come from.
  const float from = highest == -INFINITY ? 0.f : highest, by = expf(seen.top - from);
  seen.sum *= by;
#pragma unroll
  for (int i = 0; i < kParts; ++i)
    seen.out[i] = scaled(seen.out[i], by);
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    if (key + j >= end) continue;
    float4 row[kParts];
    load_row<kQuads>(row, keys + (key + j) * stride + value_from, width, lane);
    const float weight = expf(scores[j] - from);
    seen.sum += weight;
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      seen.out[i] = plus(seen.out[i], weight, row[i]);
  }
  seen.top = highest;
}

template <bool kQuads, class T>
__global__ void __launch_bounds__(kThreads) newest_query_kernel(const NewestQuery c) {
  __shared__ Shared shared;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int head = static_cast<int>(blockIdx.x), width = c.head_dim;
  const NewestText& text = c.of[blockIdx.y];
  const std::int64_t stride = std::int64_t{2} * c.key_heads * width;
  const std::int64_t row = (std::int64_t{blockIdx.y} * c.heads + head) * width;
  const T* const keys = static_cast<const T*>(text.kv) + head / (c.heads / c.key_heads) * width;
  float4 query[kParts];
  load_row<kQuads>(query, c.q + row, width, lane);
#pragma unroll
  for (int i = 0; i < kParts; ++i)
    query[i] = scaled(query[i], c.scale);
  Seen seen;
  for (std::int64_t key = warp * kKeys; key < text.seen; key += kWarps * kKeys)
    see_keys<kQuads>(seen, query, keys, stride, std::int64_t{c.key_heads} * width, key, text.seen,
                     width, lane);
  if (lane == 0) shared.top[warp] = seen.top, shared.sum[warp] = seen.sum;
#pragma unroll
  for (int i = 0; i < kParts; ++i)
    shared.out[warp][lane + 32 * i] = seen.out[i];
  __syncthreads();
  const int d = static_cast<int>(threadIdx.x);
  if (d >= width) return;
  float top = shared.top[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w)
    top = fmaxf(top, shared.top[w]);
  const float from = top == -INFINITY ? 0.f : top;
  float sum = 0, out = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    // A warp without keys has a sum of nothing.
    const float weight = expf(shared.top[w] - from);
    sum = fmaf(weight, shared.sum[w], sum);
    out = fmaf(weight, reinterpret_cast<const float*>(shared.out[w])[d], out);
  }
  c.out[row + d] = out / sum;
}

bool refused(const NewestQuery& c) {
  if (c.texts < 0 || c.texts > kNewestTexts || c.heads < 1 || c.key_heads < 1 ||
      c.heads % c.key_heads != 0 || c.head_dim < 1 || c.head_dim > kWidest)
    return true;
  for (int i = 0; i < c.texts; ++i)
    if (c.of[i].seen < 1) return true;
  return false;
}

template <class T>
int run(const NewestQuery& call, CUstream_st* stream) {
  bool quads = call.head_dim % 4 == 0 && aligned_to_16(call.q);
  for (int i = 0; i < call.texts; ++i)
    quads = quads && aligned_to_16(call.of[i].kv);
  const dim3 grid(static_cast<unsigned>(call.heads), static_cast<unsigned>(call.texts));
  return launch(quads ? newest_query_kernel<true, T> : newest_query_kernel<false, T>, grid,
                kThreads, 0, stream, call);
}

}  // namespace

int newest_query(const NewestQuery& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  return call.type == Type::bf16 ? run<__nv_bfloat16>(call, stream) : run<float>(call, stream);
}

}  // namespace vfm::kernels
