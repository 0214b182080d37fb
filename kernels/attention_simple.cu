// Attention for f32, and for bf16 that the tensor cores' versions cannot take: any head dim up to
// 256, any stride, any alignment. Right first: a warp for a row, 32 rows of the other side at a
// time. Of those each lane makes the score of one, then all lanes add up the weighted rows, each
// its own elements.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cmath>

#include "attention.h"
#include "common/attention.cuh"
#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace vfm::kernels {
namespace {

constexpr int kWarps = 4, kWidest = 256;
constexpr int kParts = kWidest / 128;  // of four elements: what a lane has of a row

// Rows of the warp that all lanes read, and the weights of 32 rows of the other side.
struct Shared {
  float4 row[kWarps][kWidest / 4], other[kWarps][kWidest / 4];
  float weights[kWarps][32], others[kWarps][32];
};

// What a warp works on; `row` is the item's row of this warp, from the sample's first, or beyond
// it.
struct Place {
  AttentionItem item;
  int warp, lane, row, head;
};

// Blocks are in order of items, and within one of rows, kWarps each.
__device__ __forceinline__ Place place_of(const AttentionItem* items, int rows) {
  Place p;
  const int blocks = rows / kWarps, block = static_cast<int>(blockIdx.x);
  p.item = items[block / blocks];
  p.warp = static_cast<int>(threadIdx.x / 32);
  p.lane = static_cast<int>(threadIdx.x % 32);
  p.row = p.item.first + block % blocks * kWarps + p.warp;
  p.head = static_cast<int>(blockIdx.y);
  return p;
}

template <bool kQuads, class T>
__device__ __forceinline__ void keep_row(float4* to, const T* from, int width, int lane) {
  for (int i = lane; 4 * i < width; i += 32)
    to[i] = load_part<kQuads>(from + 4 * i, width - 4 * i);
}

template <bool kQuads, class T>
__device__ __forceinline__ float dot(const float4* kept, const T* row, int width) {
  float sum = 0;
  for (int i = 0; 4 * i < width; ++i)
    sum += dot4(kept[i], load_part<kQuads>(row + 4 * i, width - 4 * i));
  return sum;
}

// sum += weight * row: the lane's elements.
template <bool kQuads, class T>
__device__ __forceinline__ void add_row(float4 (&sum)[kParts], float weight, const T* row,
                                        int width, int lane) {
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    const int d = 4 * lane + 128 * i;
    const float4 v = load_part<kQuads>(row + d, width - d);
    sum[i] = {sum[i].x + weight * v.x, sum[i].y + weight * v.y, sum[i].z + weight * v.z,
              sum[i].w + weight * v.w};
  }
}

template <bool kQuads, class T>
__device__ __forceinline__ void write_row(T* to, const float4 (&sum)[kParts], float factor,
                                          int width, int lane) {
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    const int d = 4 * lane + 128 * i;
    store_part<kQuads>(to + d,
                       {sum[i].x * factor, sum[i].y * factor, sum[i].z * factor, sum[i].w * factor},
                       width - d);
  }
}

// Out: what `out` is of.
template <bool kQuads, class T, class Out>
__global__ void __launch_bounds__(32 * kWarps) attention_simple_kernel(const Attention c) {
  __shared__ Shared shared;
  const Place p = place_of(c.query_items, kAttentionQueryBlock);
  if (p.row >= p.item.queries) return;
  const int width = c.head_dim, key_head = p.head / (c.heads / c.key_heads);
  const std::int64_t row = std::int64_t{p.item.query_start} + p.row;
  const T* q = static_cast<const T*>(c.q) + row * c.q_stride + p.head * width;
  const std::int64_t kv = p.item.key_start * c.kv_stride + key_head * width;
  const T* k = static_cast<const T*>(c.k) + kv;
  const T* v = static_cast<const T*>(c.v) + kv;
  const float factor = c.scale * kAttentionLog2E;
  const int seen = seen_keys(c, p.item, p.row);
  float4* kept = shared.row[p.warp];
  float* weights = shared.weights[p.warp];
  keep_row<kQuads>(kept, q, width, p.lane);
  __syncwarp();
  // Of key 0.
  const float* bias =
      c.bias ? c.bias + p.head * (2 * c.bias_reach - 1) + c.bias_reach - 1 + p.row : nullptr;
  float top = kAttentionNoScore, sum = 0;  // sum: this lane's keys'
  float4 out[kParts] = {};
  for (int key = 0; key < seen; key += 32) {
    const bool mine = key + p.lane < seen;
    float score = mine ? dot<kQuads>(kept, k + (key + p.lane) * c.kv_stride, width) : -INFINITY;
    if (bias && mine) score += bias[-key - p.lane];
    const float highest = warp_max(fmaxf(top, score)), by = exp2f((top - highest) * factor);
    const float weight = exp2f((score - highest) * factor);
    top = highest;
    sum = sum * by + weight;
    weights[p.lane] = weight;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      out[i] = {out[i].x * by, out[i].y * by, out[i].z * by, out[i].w * by};
    for (int i = 0; i < min(32, seen - key); ++i)
      add_row<kQuads>(out, weights[i], v + (key + i) * c.kv_stride, width, p.lane);
    __syncwarp();
  }
  sum = warp_sum(sum);
  const float inverse = sum != 0 ? 1.f / sum : 0.f;  // a NaN must come through
  Out* to = static_cast<Out*>(c.out) + (row * c.heads + p.head) * width;
  write_row<kQuads>(to, out, inverse, width, p.lane);
  if (p.lane == 0)
    c.log_sum_exp[p.head * c.queries + row] = sum != 0 ? top * c.scale + logf(sum) : 0.f;
}

template <bool kQuads, class T>
__global__ void __launch_bounds__(32 * kWarps) attention_simple_queries_kernel(const Attention c) {
  __shared__ Shared shared;
  const Place p = place_of(c.query_items, kAttentionQueryBlock);
  if (p.row >= p.item.queries) return;
  const int width = c.head_dim, key_head = p.head / (c.heads / c.key_heads);
  const std::int64_t row = std::int64_t{p.item.query_start} + p.row;
  const std::int64_t at = row * c.q_stride + p.head * width;
  const std::int64_t kv = p.item.key_start * c.kv_stride + key_head * width;
  const T* k = static_cast<const T*>(c.k) + kv;
  const T* v = static_cast<const T*>(c.v) + kv;
  const int seen = seen_keys(c, p.item, p.row);
  const float2 sums = reinterpret_cast<const float2*>(c.row_sums)[p.head * c.queries + row];
  float* weights = shared.weights[p.warp];
  keep_row<kQuads>(shared.row[p.warp], static_cast<const T*>(c.q) + at, width, p.lane);
  keep_row<kQuads>(shared.other[p.warp],
                   static_cast<const T*>(c.dout) + (row * c.heads + p.head) * width, width, p.lane);
  __syncwarp();
  float4 dq[kParts] = {};
  for (int key = 0; key < seen; key += 32) {
    if (key + p.lane < seen) {
      const std::int64_t mine = (key + p.lane) * c.kv_stride;
      const float score =
          dot<kQuads>(shared.row[p.warp], k + mine, width) * (c.scale * kAttentionLog2E);
      const float dp = dot<kQuads>(shared.other[p.warp], v + mine, width);
      weights[p.lane] = exp2f(score - sums.x) * (dp - sums.y);
    }
    __syncwarp();
    for (int i = 0; i < min(32, seen - key); ++i)
      add_row<kQuads>(dq, weights[i], k + (key + i) * c.kv_stride, width, p.lane);
    __syncwarp();
  }
  write_row<kQuads>(static_cast<T*>(c.dq) + at, dq, c.scale, width, p.lane);
}

template <bool kQuads, class T>
__global__ void __launch_bounds__(32 * kWarps, 6) attention_simple_keys_kernel(const Attention c) {
  __shared__ Shared shared;
  const Place p = place_of(c.key_items, kAttentionKeyBlock);
  if (p.row >= p.item.keys) return;
  const int width = c.head_dim, group = c.heads / c.key_heads;
  const std::int64_t kv = (std::int64_t{p.item.key_start} + p.row) * c.kv_stride + p.head * width;
  const std::int64_t out_stride = std::int64_t{c.heads} * width;
  const int queries = p.item.queries, begin = first_seeing(c, p.item, p.row);
  float *weights = shared.weights[p.warp], *others = shared.others[p.warp];
  keep_row<kQuads>(shared.row[p.warp], static_cast<const T*>(c.k) + kv, width, p.lane);
  keep_row<kQuads>(shared.other[p.warp], static_cast<const T*>(c.v) + kv, width, p.lane);
  __syncwarp();
  float4 dk[kParts] = {}, dv[kParts] = {};
  for (int head = p.head * group; head < (p.head + 1) * group; ++head) {
    const std::int64_t start = p.item.query_start;
    const T* q = static_cast<const T*>(c.q) + start * c.q_stride + head * width;
    const T* dout = static_cast<const T*>(c.dout) + start * out_stride + head * width;
    const float2* sums = reinterpret_cast<const float2*>(c.row_sums) + head * c.queries + start;
    for (int query = begin; query < queries; query += 32) {
      const int mine = query + p.lane;
      if (mine < queries) {
        const float score = dot<kQuads>(shared.row[p.warp], q + mine * c.q_stride, width);
        const float dp = dot<kQuads>(shared.other[p.warp], dout + mine * out_stride, width);
        const float weight = exp2f(score * (c.scale * kAttentionLog2E) - sums[mine].x);
        weights[p.lane] = weight;
        others[p.lane] = weight * (dp - sums[mine].y);
      }
      __syncwarp();
      for (int i = 0; i < min(32, queries - query); ++i) {
        add_row<kQuads>(dv, weights[i], dout + (query + i) * out_stride, width, p.lane);
        add_row<kQuads>(dk, others[i], q + (query + i) * c.q_stride, width, p.lane);
      }
      __syncwarp();
    }
  }
  write_row<kQuads>(static_cast<T*>(c.dk) + kv, dk, c.scale, width, p.lane);
  write_row<kQuads>(static_cast<T*>(c.dv) + kv, dv, 1.f, width, p.lane);
}

dim3 simple_grid(std::int64_t items, int rows, int heads) {
  return {static_cast<unsigned>(items * (rows / kWarps)), static_cast<unsigned>(heads)};
}

template <bool kQuads, class T, class Out>
int simple_forward(const Attention& c, cudaStream_t stream) {
  return launch(attention_simple_kernel<kQuads, T, Out>,
                simple_grid(c.query_item_count, kAttentionQueryBlock, c.heads), 32 * kWarps, 0,
                stream, c);
}

template <bool kQuads, class T>
int simple_backward(const Attention& c, cudaStream_t stream) {
  if (const int status = launch(attention_simple_keys_kernel<kQuads, T>,
                                simple_grid(c.key_item_count, kAttentionKeyBlock, c.key_heads),
                                32 * kWarps, 0, stream, c))
    return status;
  return launch(attention_simple_queries_kernel<kQuads, T>,
                simple_grid(c.query_item_count, kAttentionQueryBlock, c.heads), 32 * kWarps, 0,
                stream, c);
}

}  // namespace

int attention_simple_forward(const Attention& call, cudaStream_t stream) {
  const bool quads = attention_in_quads(call);
  if (call.type == Type::f32)
    return quads ? simple_forward<true, float, float>(call, stream)
                 : simple_forward<false, float, float>(call, stream);
  if (call.wide)
    return quads ? simple_forward<true, __nv_bfloat16, float>(call, stream)
                 : simple_forward<false, __nv_bfloat16, float>(call, stream);
  return quads ? simple_forward<true, __nv_bfloat16, __nv_bfloat16>(call, stream)
               : simple_forward<false, __nv_bfloat16, __nv_bfloat16>(call, stream);
}

int attention_simple_backward(const Attention& call, cudaStream_t stream) {
  const bool quads = attention_in_quads(call);
  if (call.type == Type::f32)
    return quads ? simple_backward<true, float>(call, stream)
                 : simple_backward<false, float>(call, stream);
  return quads ? simple_backward<true, __nv_bfloat16>(call, stream)
               : simple_backward<false, __nv_bfloat16>(call, stream);
}

}  // namespace vfm::kernels
