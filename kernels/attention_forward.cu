// Forward on tensor cores. A block of 4 warps has 128 queries of a head, a warp 32 of them: each
// piece of keys or values read from shared memory serves two pieces of queries, since with one,
// shared memory would be the bottleneck. While a tile of keys and values is worked on, the next one
// arrives. 32 keys a tile at a head dim of 128: with 64, the scores would leave too few of the 255
// registers to read ahead of the tensor cores. At most 64 KiB of shared memory, so that an A100 has
// room for a second block, which computes where one waits.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <ptx/fast.cuh>

#include "attention.h"
#include "common/attention.cuh"
#include "common/attention_tile.cuh"
#include "common/launch.cuh"
#include "common/shared.cuh"

namespace vfm::kernels {
namespace {

constexpr int kQueries = kAttentionQueryBlock;
constexpr int kM = 2, kWarpQueries = 16 * kM;  // pieces and queries of a warp
template <int kDim>
constexpr int kKeys = kDim == 64 ? 64 : 32;  // of a tile

// Of the rows of which a lane has pieces: maximum, and this lane's part of the sum.
struct Softmax {
  float top[kM][2], sum[kM][2];
};

// Scores become 2^(score * factor - maximum), and what was summed before is brought to the new
// maximum. `factor` is scale / ln 2.
template <int kDim, int kN>
__device__ __forceinline__ void soften(float (&scores)[kM][kN][4], Softmax& state,
                                       float (&out)[kM][kDim / 8][4], float factor) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float top = largest_of_row(scores[m], half, state.top[m][half]);
      // A maximum that stays gives exactly 1, also that of no key yet: both products are rounded.
      // The compiler would make one instruction of the second one and the difference, which keeps
      // the rounding error of `base`: for a maximum of -1e30 that is 1e21.
      const float base = __fmul_rn(top, factor);
      const float by = fast_exp2(__fmul_rn(state.top[m][half], factor) - base);
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[m][n][i] = fast_exp2(scores[m][n][i] * factor - base);
          sum += scores[m][n][i];
        }
      state.top[m][half] = top;
      state.sum[m][half] = state.sum[m][half] * by + sum;
      if (by != 1.f) {
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n)
          out[m][n][2 * half] *= by, out[m][n][2 * half + 1] *= by;
      }
    }
}

// Divides by the sums; writes the log-sum-exp of the warp's queries, of which `valid` exist.
template <int kDim>
__device__ __forceinline__ void finish(float (&out)[kM][kDim / 8][4], const Softmax& state,
                                       float scale, float* log_sum_exp, int valid) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = state.sum[m][half];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const float inverse = sum != 0 ? 1.f / sum : 0.f;  // a NaN must come through
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n)
        out[m][n][2 * half] *= inverse, out[m][n][2 * half + 1] *= inverse;
      const int row = 16 * m + 8 * half + lane / 4;
      if (lane % 4 == 0 && row < valid)
        log_sum_exp[row] = sum != 0 ? state.top[m][half] * scale + logf(sum) : 0.f;
    }
}

template <int kDim>
constexpr int kTileBytes = kRowBytes<kDim>* kKeys<kDim>;
template <int kDim>
constexpr int kForwardShared = kQueries* kRowBytes<kDim> + 4 * kTileBytes<kDim>;

// T: what `out` is of.
template <int kDim, class T>
__global__ void __launch_bounds__(kTileThreads, 2) attention_forward_kernel(const Attention c) {
  constexpr int kTile = kKeys<kDim>;
  constexpr int kN = kTile / 8;
  const SharedAddress q_tile = shared_address(shared_memory());
  const AttentionItem item = c.query_items[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), key_head = head / (c.heads / c.key_heads);
  const int warp = warp_index();
  const std::int64_t row = std::int64_t{item.query_start} + item.first;
  const auto* q = static_cast<const __nv_bfloat16*>(c.q) + row * c.q_stride + head * kDim;
  const std::int64_t kv = item.key_start * c.kv_stride + key_head * kDim;
  const auto* k = static_cast<const __nv_bfloat16*>(c.k) + kv;
  const auto* v = static_cast<const __nv_bfloat16*>(c.v) + kv;
  const int last = min(item.first + kQueries, item.queries) - 1;
  const int seen = seen_keys(c, item, last);          // by the block
  const int mine = item.first + kWarpQueries * warp;  // the warp's first query
  const int warp_seen = mine <= last ? seen_keys(c, item, min(mine + kWarpQueries - 1, last)) : 0;
  const int all_see = seen_keys(c, item, mine);

  // Keys and values from `key` on, into one of two places for them.
  const auto copy_keys = [&](int key) {
    const SharedAddress to =
        q_tile + kQueries * kRowBytes<kDim> + key / kTile % 2 * 2 * kTileBytes<kDim>;
    copy_tile<kDim, kTile>(to, k + key * c.kv_stride, c.kv_stride, item.keys - key);
    copy_tile<kDim, kTile>(to + kTileBytes<kDim>, v + key * c.kv_stride, c.kv_stride,
                           item.keys - key);
    copy_async_commit();
  };
  if (seen > 0) {
    copy_tile<kDim, kQueries>(q_tile, q, c.q_stride, item.queries - item.first);
    copy_keys(0);
  }
  const SharedAddress q_place =
      q_tile + warp * kWarpQueries * kRowBytes<kDim> + lane_place_a<kDim>();
  float out[kM][kDim / 8][4];
  clear(out);
  Softmax state;
  for (int m = 0; m < kM; ++m)
    for (int half = 0; half < 2; ++half)
      state.top[m][half] = kAttentionNoScore, state.sum[m][half] = 0;
  for (int key = 0; key < seen; key += kTile) {
    copy_async_wait<0>();
    __syncthreads();  // the tile is here, and nobody reads the one before any more
    if (key + kTile < seen) copy_keys(key + kTile);
    if (key >= warp_seen) continue;
    const SharedAddress k_tile =
        q_tile + kQueries * kRowBytes<kDim> + key / kTile % 2 * 2 * kTileBytes<kDim>;
    float scores[kM][kN][4];
    rows_by_rows<kDim>(scores, q_place, k_tile + lane_place_b<kDim>());
    if (key + kTile > all_see) hide_keys(c, item, scores, mine, key);
    soften<kDim>(scores, state, out, c.scale * kAttentionLog2E);
    unsigned weights[kM][kN / 2][4];
    round_to(weights, scores);
    add_by_columns<kDim>(out, weights, k_tile + kTileBytes<kDim> + lane_place_a<kDim>());
  }
  if (mine > last) return;
  const int valid = last + 1 - mine, at = mine - item.first;
  finish<kDim>(out, state, c.scale, c.log_sum_exp + head * c.queries + row + at, valid);
  const std::int64_t stride = std::int64_t{c.heads} * kDim;
  T* const to = static_cast<T*>(c.out) + (row + at) * stride + head * kDim;
  if constexpr (sizeof(T) == sizeof(float))
    write_wide<kDim>(to, stride, valid, out);
  else
    write_rows<kDim>(to, stride, valid, out, 1.f, shared_memory() + at * kRowBytes<kDim>);
}

template <int kDim, class T>
int launch_forward_of(const Attention& c, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(c.query_item_count), static_cast<unsigned>(c.heads));
  return launch_shared<attention_forward_kernel<kDim, T>, kForwardShared<kDim>>(
      blocks, kTileThreads, stream, c);
}

template <int kDim>
int launch_forward(const Attention& c, cudaStream_t stream) {
  return c.wide ? launch_forward_of<kDim, float>(c, stream)
                : launch_forward_of<kDim, __nv_bfloat16>(c, stream);
}

}  // namespace

AttentionWork attention_work(std::span<const std::int64_t> query_lengths,
                             std::span<const std::int64_t> key_lengths, bool causal) {
  AttentionWork work;
  AttentionItem item;
  for (std::size_t s = 0; s < query_lengths.size(); ++s) {
    item.sample = static_cast<std::int32_t>(s);
    item.queries = static_cast<std::int32_t>(query_lengths[s]);
    item.keys = static_cast<std::int32_t>(key_lengths[s]);
    for (item.first = 0; item.first < item.queries; item.first += kAttentionQueryBlock)
      work.query_items.push_back(item);
    for (item.first = 0; item.first < item.keys; item.first += kAttentionKeyBlock)
      work.key_items.push_back(item);
    item.query_start += item.queries;
    item.key_start += item.keys;
  }
  const auto query_cost = [causal](const AttentionItem& i) {
    const int seen = i.first + kAttentionQueryBlock + i.keys - i.queries;
    return causal ? std::min(i.keys, seen) : i.keys;
  };
  const auto key_cost = [causal](const AttentionItem& i) {
    const int first = i.first - i.keys + i.queries;
    return i.queries - (causal ? std::max(first, 0) : 0);
  };
  std::ranges::stable_sort(work.query_items, std::greater{}, query_cost);
  std::ranges::stable_sort(work.key_items, std::greater{}, key_cost);
  return work;
}

int attention_forward(const Attention& call, CUstream_st* stream) {
  if (call.query_item_count == 0) return cudaSuccess;
  if (!attention_is_valid(call)) return cudaErrorInvalidValue;
  if (!attention_on_tensor_cores(call)) return attention_simple_forward(call, stream);
  return call.head_dim == 64 ? launch_forward<64>(call, stream) : launch_forward<128>(call, stream);
}

}  // namespace vfm::kernels
