// The products, laid out as attention_forward.cu's: a block of 4 warps has 128 queries of a head, a
// warp 32 of them; while a tile of keys and values is worked on, the next one arrives.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <ptx/fast.cuh>

#include "attention_fp8.h"
#include "common/attention_fp8.cuh"
#include "common/launch.cuh"
#include "common/shared.cuh"

namespace vfm::kernels {
namespace {

constexpr int kQueries = kAttentionQueryBlock;
constexpr int kM = 2, kWarpQueries = 16 * kM;  // pieces and queries of a warp
template <int kDim>
constexpr int kKeys = kDim == 64 ? 64 : 32;  // of a tile
constexpr float kWeightBits = 8;             // a weight of one is 2^8, or nearly
constexpr float kLn2 = 0.6931471805599453f;
constexpr unsigned kOnes = 0x38383838;       // four times 1 in E4M3

// Of the rows of which a lane has pieces: the largest score, and the sum of the weights as a tile
// of accumulators, made by a product with ones: of the rounded weights, then, and without a step of
// its own.
struct Softmax {
  float top[kM][2], sum[kM][4];
};

// The power of two that weights stand beside.
__device__ __forceinline__ float base_of(float top, float factor) {
  return rintf(__fmul_rn(top, factor));
}

// Scores become weights 2^(score * factor - base + 8) as operand a, and what was summed before is
// brought to the new base. `factor` is scale / ln 2, and the scales of queries and keys.
template <int kDim, int kN>
__device__ __forceinline__ void soften(const float (&scores)[kM][kN][4], Softmax& state,
                                       float (&out)[kM][kDim / 8][4],
                                       unsigned (&weights)[kM][kN / 4][4], float factor) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float top = largest_of_row(scores[m], half, state.top[m][half]);
      const float base = base_of(top, factor);
      const float by = fast_exp2(base_of(state.top[m][half], factor) - base);
      state.top[m][half] = top;
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const unsigned two =
            pack_e4m3(fast_exp2(scores[m][n][2 * half] * factor - base + kWeightBits),
                      fast_exp2(scores[m][n][2 * half + 1] * factor - base + kWeightBits));
        unsigned& word = weights[m][n / 4][n % 4 / 2 * 2 + half];
        word = n % 2 == 0 ? two : word | two << 16;
      }
      if (by != 1.f) {
        state.sum[m][2 * half] *= by;
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n)
          out[m][n][2 * half] *= by, out[m][n][2 * half + 1] *= by;
      }
    }
}

// Divides by the sums, and gives the values their scale back; writes the log-sum-exp of the warp's
// queries, of which `valid` exist, if anybody wants it.
template <int kDim>
__device__ __forceinline__ void finish(float (&out)[kM][kDim / 8][4], const Softmax& state,
                                       float scale, float factor, float* log_sum_exp, int valid) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = state.sum[m][2 * half];
      const float by = sum != 0 ? scale / sum : 0.f;  // a NaN must come through
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n)
        out[m][n][2 * half] *= by, out[m][n][2 * half + 1] *= by;
      const int row = 16 * m + 8 * half + lane / 4;
      if (log_sum_exp != nullptr && lane % 4 == 0 && row < valid)
        log_sum_exp[row] =
            sum != 0 ? (base_of(state.top[m][half], factor) - kWeightBits) * kLn2 + logf(sum) : 0.f;
    }
}

template <int kDim>
constexpr int kTileBytes = kDim* kKeys<kDim>;  // of keys, and of values
template <int kDim>
constexpr int kSharedBytes = std::max(kQueries* kDim + 4 * kTileBytes<kDim>,
                                      kQueries* kRowBytes<kDim>);  // the output goes through it

template <int kDim>
__global__ void __launch_bounds__(kTileThreads, 2) attention_fp8_kernel(const AttentionFp8 a) {
  constexpr int kTile = kKeys<kDim>, kN = kTile / 8;
  const Attention& c = a.call;
  const Fp8Room room = fp8_room(a);
  const SharedAddress q_tile = shared_address(shared_memory());
  const AttentionItem item = c.query_items[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), key_head = head / (c.heads / c.key_heads);
  const int warp = warp_index();
  const std::int64_t row = std::int64_t{item.query_start} + item.first;
  const unsigned* largest = room.largest + std::int64_t{item.sample} * (c.heads + 2 * c.key_heads);
  const float factor = c.scale * kAttentionLog2E * fp8_scale(largest[head]).scale *
                       fp8_scale(largest[c.heads + key_head]).scale;
  const std::uint8_t* k = room.k + (std::int64_t{item.key_start} * c.key_heads + key_head) * kDim;
  const std::uint8_t* v =
      room.v + std::int64_t{key_head} * kDim * room.columns + first_column(item);
  const int last = min(item.first + kQueries, item.queries) - 1;
  const int seen = seen_keys(c, item, last);          // by the block
  const int mine = item.first + kWarpQueries * warp;  // the warp's first query
  const int warp_seen = mine <= last ? seen_keys(c, item, min(mine + kWarpQueries - 1, last)) : 0;
  const int all_see = seen_keys(c, item, mine);

  // Keys and values from `key` on, into one of two places for them.
  const auto tile_of = [&](int key) {
    return q_tile + kQueries * kDim + key / kTile % 2 * 2 * kTileBytes<kDim>;
  };
  const auto copy_keys = [&](int key) {
    const std::int64_t stride = std::int64_t{c.key_heads} * kDim;
    copy_bytes<kDim, kTile>(tile_of(key), k + key * stride, stride, item.keys - key, kDim / 16);
    copy_bytes<kTile, kDim>(tile_of(key) + kTileBytes<kDim>, v + key, room.columns, kDim,
                            (item.keys - key + 15) / 16);
    copy_async_commit();
  };
  if (seen > 0) {
    const std::int64_t stride = std::int64_t{c.heads} * kDim;
    copy_bytes<kDim, kQueries>(q_tile, room.q + row * stride + head * kDim, stride,
                               item.queries - item.first, kDim / 16);
    copy_keys(0);
  }
  const SharedAddress q_place = q_tile + warp * kWarpQueries * kDim + fp8_place_a<kDim>();
  float out[kM][kDim / 8][4];
  clear(out);
  Softmax state;
  for (int m = 0; m < kM; ++m) {
    state.top[m][0] = state.top[m][1] = kAttentionNoScore;
    for (int i = 0; i < 4; ++i)
      state.sum[m][i] = 0;
  }
  for (int key = 0; key < seen; key += kTile) {
    copy_async_wait<0>();
    __syncthreads();  // the tile is here, and nobody reads the one before any more
    if (key + kTile < seen) copy_keys(key + kTile);
    if (key >= warp_seen) continue;
    float scores[kM][kN][4];
    fp8_rows_by_rows<kDim>(scores, q_place, tile_of(key) + fp8_place_b<kDim>());
    if (key + kTile > all_see) hide_keys(c, item, scores, mine, key);
    unsigned weights[kM][kN / 4][4];
    soften<kDim>(scores, state, out, weights, factor);
    fp8_add_rows<kTile>(out, weights, tile_of(key) + kTileBytes<kDim> + fp8_place_b<kTile>());
    for (int m = 0; m < kM; ++m)
      for (int part = 0; part < kTile / 32; ++part)
        multiply_add_e4m3(state.sum[m], weights[m][part], kOnes, kOnes);
  }
  __syncthreads();  // the output takes the tiles' place
  if (mine > last) return;
  const int valid = last + 1 - mine, at = mine - item.first;
  float* const log_sum_exp =
      c.log_sum_exp != nullptr ? c.log_sum_exp + head * c.queries + row + at : nullptr;
  finish<kDim>(out, state, fp8_scale(largest[c.heads + c.key_heads + key_head]).scale, factor,
               log_sum_exp, valid);
  const std::int64_t stride = std::int64_t{c.heads} * kDim;
  const std::int64_t to = (row + at) * stride + head * kDim;
  if (c.wide)
    write_wide<kDim>(static_cast<float*>(c.out) + to, stride, valid, out);
  else
    write_rows<kDim>(static_cast<__nv_bfloat16*>(c.out) + to, stride, valid, out, 1.f,
                     shared_memory() + at * kRowBytes<kDim>);
}

template <int kDim>
int launch_forward(const AttentionFp8& a, cudaStream_t stream) {
  const cudaError_t status = fp8_code(attention_fp8_kernel<kDim>);
  if (status != cudaSuccess) return status;
  const int copied = attention_fp8_copies(a, stream);
  if (copied != cudaSuccess) return copied;
  const dim3 blocks(static_cast<unsigned>(a.call.query_item_count),
                    static_cast<unsigned>(a.call.heads));
  return launch_shared<attention_fp8_kernel<kDim>, kSharedBytes<kDim>>(blocks, kTileThreads, stream,
                                                                       a);
}

}  // namespace

std::int64_t attention_fp8_room(const AttentionFp8& call) {
  const Attention& c = call.call;
  return (call.call.queries * c.heads + (call.keys + fp8_columns(call)) * c.key_heads) *
             c.head_dim +
         static_cast<std::int64_t>(sizeof(unsigned)) * call.samples * (c.heads + 2 * c.key_heads);
}

int attention_fp8_forward(const AttentionFp8& call, CUstream_st* stream) {
  const Attention& c = call.call;
  if (c.query_item_count == 0) return cudaSuccess;
  if (!attention_is_valid(c) || !attention_on_tensor_cores(c) || call.keys < 0 ||
      call.samples <= 0 || !aligned_to_16(call.room))
    return cudaErrorInvalidValue;
  return c.head_dim == 64 ? launch_forward<64>(call, stream) : launch_forward<128>(call, stream);
}

}  // namespace vfm::kernels
