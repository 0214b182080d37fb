// Backward on tensor cores, in three launches: what both others need of every query; dk and dv by
// blocks of keys; dq by blocks of queries. With p = 2^(score * factor - log-sum-exp) and
// delta = rowsum(dout * out), summed over the queries or keys that see each other,
//   dv = p^T dout, ds = p * (dout v^T - delta), dk = scale ds^T q, dq = scale ds k.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cmath>
#include <ptx/fast.cuh>

#include "attention.h"
#include "common/attention.cuh"
#include "common/attention_tile.cuh"
#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/shared.cuh"
#include "common/vector.cuh"

namespace vfm::kernels {
namespace {

constexpr int kSumsThreads = 256;

// A warp for a query and head: row_sums = log-sum-exp to the base of two, delta.
template <bool kQuads, class T>
__global__ void __launch_bounds__(kSumsThreads) attention_sums_kernel(const Attention c) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t row = std::int64_t{blockIdx.x} * (kSumsThreads / 32) + threadIdx.x / 32;
  const std::int64_t head = blockIdx.y;
  if (row >= c.queries) return;
  const std::int64_t place = (row * c.heads + head) * c.head_dim;
  const T* out = static_cast<const T*>(c.out) + place;
  const T* dout = static_cast<const T*>(c.dout) + place;
  float sum = 0;
  for (int d = 4 * lane; d < c.head_dim; d += 128) {
    const float4 a = load_part<kQuads>(out + d, c.head_dim - d);
    const float4 b = load_part<kQuads>(dout + d, c.head_dim - d);
    sum += dot4(a, b);
  }
  sum = warp_sum(sum);
  const std::int64_t at = head * c.queries + row;
  if (lane == 0)
    reinterpret_cast<float2*>(c.row_sums)[at] = {c.log_sum_exp[at] * kAttentionLog2E, sum};
}

template <class T>
int launch_sums(const Attention& c, cudaStream_t stream) {
  constexpr int kRows = kSumsThreads / 32;
  const dim3 blocks(static_cast<unsigned>((c.queries + kRows - 1) / kRows),
                    static_cast<unsigned>(c.heads));
  const auto kernel =
      attention_in_quads(c) ? attention_sums_kernel<true, T> : attention_sums_kernel<false, T>;
  return launch(kernel, blocks, kSumsThreads, 0, stream, c);
}

// dk and dv: a block of 4 warps has 64 keys of a key head, a warp 16 of them, whose keys and values
// stay in registers. Scores are made transposed, keys down and queries across, so that rounded they
// are the left operands of dv and dk. Queries and dout arrive 64 at a time, a tile ahead, for each
// head that shares the key head; of a tile 16 or 32 queries are worked on at once.
constexpr int kKeys = kAttentionKeyBlock, kTile = 64;
template <int kDim>
constexpr int kStep = kDim == 64 ? 32 : 16;

// The share of queries `query` to query + kStep. Queries beyond the sample's have rows of zeros in
// the tiles, so add nothing.
template <int kDim>
__device__ __forceinline__ void add_step(const Attention& c, const AttentionItem& item,
                                         const unsigned (&k)[kDim / 16][4],
                                         const unsigned (&v)[kDim / 16][4], SharedAddress q_tile,
                                         SharedAddress dout_tile, const float4* sums, int query,
                                         int key, float (&dk)[1][kDim / 8][4],
                                         float (&dv)[1][kDim / 8][4]) {
  constexpr int kN = kStep<kDim> / 8;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float factor = c.scale * kAttentionLog2E;
  float p[1][kN][4], ds[1][kN][4];
  clear(p);
  clear(ds);
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {  // side by side, since each sum alone waits for itself
    add_rows_by_rows<kDim>(p, k[i], (q_tile + lane_place_b<kDim>()) ^ 32u * i);
    add_rows_by_rows<kDim>(ds, v[i], (dout_tile + lane_place_b<kDim>()) ^ 32u * i);
  }
  if (c.causal && key + 15 > query + item.keys - item.queries)
    hide_from_queries(c, item, p, key, query);
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const float4 pair = sums[4 * n + lane % 4];  // of queries 8 n + lane % 4 * 2 and the next
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float lse = i % 2 == 0 ? pair.x : pair.z, delta = i % 2 == 0 ? pair.y : pair.w;
      p[0][n][i] = fast_exp2(p[0][n][i] * factor - lse);
      ds[0][n][i] = p[0][n][i] * (ds[0][n][i] - delta);
    }
  }
  unsigned left[1][kN / 2][4];
  round_to(left, p);
  add_by_columns<kDim>(dv, left, dout_tile + lane_place_a<kDim>());
  round_to(left, ds);
  add_by_columns<kDim>(dk, left, q_tile + lane_place_a<kDim>());
}

// Two places, each for a tile of queries and one of dout; behind them the queries' sums.
template <int kDim>
constexpr int kTileBytes = kTile* kRowBytes<kDim>;
template <int kDim>
constexpr int kKeysShared = 4 * kTileBytes<kDim> + 2 * kTile * 8;

template <int kDim>
__global__ void __launch_bounds__(kTileThreads, 2) attention_keys_kernel(const Attention c) {
  const SharedAddress shared = shared_address(shared_memory());
  const AttentionItem item = c.key_items[blockIdx.x];
  const int key_head = static_cast<int>(blockIdx.y), group = c.heads / c.key_heads;
  const int key = item.first + 16 * warp_index();  // the warp's first
  const std::int64_t row = std::int64_t{item.key_start} + item.first;
  const std::int64_t kv = row * c.kv_stride + key_head * kDim;
  const std::int64_t out_stride = std::int64_t{c.heads} * kDim;
  const int begin = first_seeing(c, item, item.first) / kTile * kTile;
  const int tiles = max(0, (item.queries - begin + kTile - 1) / kTile);

  // Step t is tile t % tiles of head t / tiles of the group.
  const auto copy_queries = [&](int t) {
    const int query = begin + t % tiles * kTile, head = key_head * group + t / tiles;
    const int valid = item.queries - query;
    const std::int64_t at = std::int64_t{item.query_start} + query;
    const SharedAddress to = shared + t % 2 * 2 * kTileBytes<kDim>;
    copy_tile<kDim, kTile>(to,
                           static_cast<const __nv_bfloat16*>(c.q) + at * c.q_stride + head * kDim,
                           c.q_stride, valid);
    copy_tile<kDim, kTile>(
        to + kTileBytes<kDim>,
        static_cast<const __nv_bfloat16*>(c.dout) + at * out_stride + head * kDim, out_stride,
        valid);
    const int i = static_cast<int>(threadIdx.x);
    const float* sums = c.row_sums + 2 * (head * c.queries + at);
    if (i < kTile)
      copy_async_8(shared + 4 * kTileBytes<kDim> + (t % 2 * kTile + i) * 8,
                   i < valid ? sums + 2 * i : sums, i < valid);
    copy_async_commit();
  };

  // Keys and values first lie in the second place for tiles.
  const SharedAddress second = shared + 2 * kTileBytes<kDim>;
  copy_tile<kDim, kKeys>(second, static_cast<const __nv_bfloat16*>(c.k) + kv, c.kv_stride,
                         item.keys - item.first);
  copy_tile<kDim, kKeys>(second + kTileBytes<kDim>, static_cast<const __nv_bfloat16*>(c.v) + kv,
                         c.kv_stride, item.keys - item.first);
  copy_async_commit();
  if (tiles > 0) copy_queries(0);
  copy_async_wait<0>();
  __syncthreads();
  unsigned k[kDim / 16][4], v[kDim / 16][4];
  const SharedAddress mine = second + (key - item.first) * kRowBytes<kDim> + lane_place_a<kDim>();
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {
    load_matrices(k[i], mine ^ 32u * i);
    load_matrices(v[i], (mine ^ 32u * i) + kTileBytes<kDim>);
  }
  float dk[1][kDim / 8][4], dv[1][kDim / 8][4];
  clear(dk);
  clear(dv);
  for (int t = 0; t < tiles * group; ++t) {
    copy_async_wait<0>();
    __syncthreads();  // the tile is here, and nobody reads the one before any more
    if (t + 1 < tiles * group) copy_queries(t + 1);
    if (key >= item.keys) continue;
    const SharedAddress tile = shared + t % 2 * 2 * kTileBytes<kDim>;
    const auto* sums = reinterpret_cast<const float4*>(shared_memory() + 4 * kTileBytes<kDim>) +
                       t % 2 * (kTile / 2);
    const int first = begin + t % tiles * kTile;
#pragma unroll 1
    for (int i = 0; i < kTile; i += kStep<kDim>) {
      const int query = first + i;
      const bool seeing = !c.causal || key <= query + kStep<kDim> - 1 + item.keys - item.queries;
      if (query < item.queries && seeing)
        add_step<kDim>(c, item, k, v, tile + i * kRowBytes<kDim>,
                       tile + kTileBytes<kDim> + i * kRowBytes<kDim>, sums + i / 2, query, key, dk,
                       dv);
    }
  }
  __syncthreads();
  const int at = key - item.first, valid = item.keys - key;
  const std::int64_t to = kv + at * c.kv_stride;
  unsigned char* room = shared_memory() + at * kRowBytes<kDim>;
  write_rows<kDim>(static_cast<__nv_bfloat16*>(c.dk) + to, c.kv_stride, valid, dk, c.scale, room);
  write_rows<kDim>(static_cast<__nv_bfloat16*>(c.dv) + to, c.kv_stride, valid, dv, 1.f, room);
}

// dq: a block of 4 warps has 128 queries of a head, a warp 32 of them; keys and values arrive 32 at
// a time, a tile ahead. At a head dim of 128 that is 96 KiB of shared memory: two blocks on a
// multiprocessor of a Hopper, one on an Ampere's.
constexpr int kQueries = kAttentionQueryBlock, kKeyTile = 32;
constexpr int kM = 2, kN = kKeyTile / 8, kWarpQueries = 16 * kM;

// Scores become the left operand of dq.
__device__ __forceinline__ void differentiate(const float (&scores)[kM][kN][4],
                                              const float (&dp)[kM][kN][4],
                                              const float2 (&sums)[kM][2], float factor,
                                              unsigned (&left)[kM][kN / 2][4]) {
  float ds[kM][kN][4];
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 sum = sums[m][i / 2];
        ds[m][n][i] = fast_exp2(scores[m][n][i] * factor - sum.x) * (dp[m][n][i] - sum.y);
      }
  round_to(left, ds);
}

template <int kDim>
constexpr int kKeyTileBytes = kKeyTile* kRowBytes<kDim>;
template <int kDim>
constexpr int kQueriesShared = 2 * kQueries* kRowBytes<kDim> + 4 * kKeyTileBytes<kDim>;

template <int kDim>
__global__ void __launch_bounds__(kTileThreads, 2) attention_queries_kernel(const Attention c) {
  const SharedAddress shared = shared_address(shared_memory());
  const AttentionItem item = c.query_items[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), key_head = head / (c.heads / c.key_heads);
  const std::int64_t out_stride = std::int64_t{c.heads} * kDim;
  const std::int64_t row = std::int64_t{item.query_start} + item.first;
  const std::int64_t kv = item.key_start * c.kv_stride + key_head * kDim;
  const auto* k = static_cast<const __nv_bfloat16*>(c.k) + kv;
  const auto* v = static_cast<const __nv_bfloat16*>(c.v) + kv;
  const int last = min(item.first + kQueries, item.queries) - 1;
  const int seen = seen_keys(c, item, last);                  // by the block
  const int mine = item.first + kWarpQueries * warp_index();  // the warp's first query
  const int warp_seen = mine <= last ? seen_keys(c, item, min(mine + kWarpQueries - 1, last)) : 0;
  const int all_see = seen_keys(c, item, mine);
  const SharedAddress dout_tile = shared + kQueries * kRowBytes<kDim>;
  const SharedAddress key_tiles = dout_tile + kQueries * kRowBytes<kDim>;

  const auto copy_keys = [&](int key) {
    const SharedAddress to = key_tiles + key / kKeyTile % 2 * 2 * kKeyTileBytes<kDim>;
    const std::int64_t at = key * c.kv_stride;
    copy_tile<kDim, kKeyTile>(to, k + at, c.kv_stride, item.keys - key);
    copy_tile<kDim, kKeyTile>(to + kKeyTileBytes<kDim>, v + at, c.kv_stride, item.keys - key);
    copy_async_commit();
  };
  if (seen > 0) {
    copy_tile<kDim, kQueries>(
        shared, static_cast<const __nv_bfloat16*>(c.q) + row * c.q_stride + head * kDim, c.q_stride,
        last + 1 - item.first);
    copy_tile<kDim, kQueries>(
        dout_tile, static_cast<const __nv_bfloat16*>(c.dout) + row * out_stride + head * kDim,
        out_stride, last + 1 - item.first);
    copy_keys(0);
  }
  float2 sums[kM][2];
  const int lane = static_cast<int>(threadIdx.x % 32), at = mine - item.first;
  for (int m = 0; m < kM; ++m)
    for (int half = 0; half < 2; ++half) {
      const int i = 16 * m + 8 * half + lane / 4;
      sums[m][half] =
          mine + i <= last
              ? reinterpret_cast<const float2*>(c.row_sums)[head * c.queries + row + at + i]
              : float2{0, 0};
    }
  const SharedAddress place = shared + at * kRowBytes<kDim> + lane_place_a<kDim>();
  float dq[kM][kDim / 8][4];
  clear(dq);
  for (int key = 0; key < seen; key += kKeyTile) {
    copy_async_wait<0>();
    __syncthreads();  // the tile is here, and nobody reads the one before any more
    if (key + kKeyTile < seen) copy_keys(key + kKeyTile);
    if (key >= warp_seen) continue;
    const SharedAddress tile = key_tiles + key / kKeyTile % 2 * 2 * kKeyTileBytes<kDim>;
    float scores[kM][kN][4], dp[kM][kN][4];
    rows_by_rows<kDim>(scores, place, tile + lane_place_b<kDim>());
    if (key + kKeyTile > all_see) hide_keys(c, item, scores, mine, key);
    rows_by_rows<kDim>(dp, place + kQueries * kRowBytes<kDim>,
                       tile + kKeyTileBytes<kDim> + lane_place_b<kDim>());
    unsigned left[kM][kN / 2][4];
    differentiate(scores, dp, sums, c.scale * kAttentionLog2E, left);
    add_by_columns<kDim>(dq, left, tile + lane_place_a<kDim>());
  }
  if (mine > last) return;
  write_rows<kDim>(static_cast<__nv_bfloat16*>(c.dq) + (row + at) * c.q_stride + head * kDim,
                   c.q_stride, last + 1 - mine, dq, c.scale,
                   shared_memory() + at * kRowBytes<kDim>);
}

template <int kDim>
int launch_backward(const Attention& c, cudaStream_t stream) {
  const dim3 keys(static_cast<unsigned>(c.key_item_count), static_cast<unsigned>(c.key_heads));
  const dim3 queries(static_cast<unsigned>(c.query_item_count), static_cast<unsigned>(c.heads));
  if (const int status = launch_shared<attention_keys_kernel<kDim>, kKeysShared<kDim>>(
          keys, kTileThreads, stream, c))
    return status;
  return launch_shared<attention_queries_kernel<kDim>, kQueriesShared<kDim>>(queries, kTileThreads,
                                                                             stream, c);
}

}  // namespace

int attention_backward(const Attention& call, CUstream_st* stream) {
  if (call.query_item_count == 0 && call.key_item_count == 0) return cudaSuccess;
  if (!attention_is_valid(call)) return cudaErrorInvalidValue;
  const int status = call.type == Type::bf16 ? launch_sums<__nv_bfloat16>(call, stream)
                                             : launch_sums<float>(call, stream);
  if (status != cudaSuccess) return status;
  if (!attention_on_tensor_cores(call)) return attention_simple_backward(call, stream);
  return call.head_dim == 64 ? launch_backward<64>(call, stream)
                             : launch_backward<128>(call, stream);
}

}  // namespace vfm::kernels
