// Tiles of attention (common/tile.cuh): copies, products and masks. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ptx/mma.cuh>

#include "attention.cuh"
#include "tile.cuh"

namespace vfm::kernels {

/// Number of threads in blocks that use tiles.
inline constexpr int kTileThreads = 128;

/// Starts copying kRows rows, `stride` elements apart; rows from `valid` on become zero. All
/// threads of the block must call it.
template <int kDim, int kRows>
__device__ __forceinline__ void copy_tile(SharedAddress to, const __nv_bfloat16* from,
                                          std::int64_t stride, int valid) {
  constexpr int kGroups = kDim / 8, kStep = kTileThreads / kGroups;
  const int thread = static_cast<int>(threadIdx.x), row = thread / kGroups;
  const int group = thread % kGroups;
  const SharedAddress place =
      to + static_cast<unsigned>(row * kRowBytes<kDim> + ((group ^ row % 8) << 4));
  const __nv_bfloat16* source = from + row * stride + 8 * group;
#pragma unroll
  for (int i = 0; i < kRows / kStep; ++i) {
    // kStep is a multiple of 8, so the swap is the same in all of a thread's rows.
    const bool inside = row + i * kStep < valid;
    copy_async_16(place + i * kStep * kRowBytes<kDim>, inside ? source + i * kStep * stride : from,
                  inside);
  }
}

/// c = a b^T; arguments as for add_rows_by_rows() of common/tile.cuh.
template <int kDim, int kM, int kN>
__device__ __forceinline__ void rows_by_rows(float (&c)[kM][kN][4], SharedAddress a,
                                             SharedAddress b) {
  clear(c);
  add_rows_by_rows<kDim>(c, a, b);
}

/// Returns in all lanes the largest of `top` and a row of scores, one of two in an operand's tile.
template <int kN>
__device__ __forceinline__ float largest_of_row(const float (&scores)[kN][4], int half, float top) {
#pragma unroll
  for (int n = 0; n < kN; ++n)
    top = fmaxf(top, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
  return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
}

/// c += a b^T: a is one piece in registers, b one piece of each of 8 kN rows.
template <int kDim, int kN>
__device__ __forceinline__ void add_rows_by_rows(float (&c)[1][kN][4], const unsigned (&a)[4],
                                                 SharedAddress b) {
#pragma unroll
  for (int n = 0; n < kN / 2; ++n) {
    unsigned right[4];
    load_matrices(right, b + n * 16 * kRowBytes<kDim>);
    multiply_add(c[0][2 * n], a, right[0], right[1]);
    multiply_add(c[0][2 * n + 1], a, right[2], right[3]);
  }
}

/// c += a b: a is 16 kK columns in registers, b has as many rows, at the lane's place of kind a.
template <int kDim, int kM, int kK>
__device__ __forceinline__ void add_by_columns(float (&c)[kM][kDim / 8][4],
                                               const unsigned (&a)[kM][kK][4], SharedAddress b) {
#pragma unroll
  for (int k = 0; k < kK; ++k)
#pragma unroll
    for (int n = 0; n < kDim / 16; ++n) {
      unsigned right[4];
      load_transposed(right, (b ^ 32u * n) + k * 16 * kRowBytes<kDim>);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(c[m][2 * n], a[m][k], right[0], right[1]);
        multiply_add(c[m][2 * n + 1], a[m][k], right[2], right[3]);
      }
    }
}

/// Sets scores of keys that a query must not see, or that are beyond the sample, to -infinity.
/// `row` is the warp's first query, `key` the tile's first key.
template <int kM, int kN>
__device__ __forceinline__ void hide_keys(const Attention& c, const AttentionItem& item,
                                          float (&scores)[kM][kN][4], int row, int key) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int seen = seen_keys(c, item, row + 16 * m + 8 * half + lane / 4) - key - lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (8 * n + i >= seen) scores[m][n][2 * half + i] = -INFINITY;
    }
}

/// hide_keys() for a transposed tile: `row` is the warp's first key, `query` the tile's first
/// query.
template <int kN>
__device__ __forceinline__ void hide_from_queries(const Attention& c, const AttentionItem& item,
                                                  float (&scores)[1][kN][4], int row, int query) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first = first_seeing(c, item, row + 8 * half + lane / 4) - query - lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (8 * n + i < first) scores[0][n][2 * half + i] = -INFINITY;
  }
}

__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  unsigned word;
  std::memcpy(&word, &pair, sizeof word);
  return word;
}

/// Rounds accumulators to bf16, as operand a.
template <int kM, int kN>
__device__ __forceinline__ void round_to(unsigned (&to)[kM][kN / 2][4],
                                         const float (&c)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        to[m][n / 2][n % 2 * 2 + half] = pack_bf16(c[m][n][2 * half], c[m][n][2 * half + 1]);
}

/// Writes a warp's 16 kM rows, multiplied by `factor` and rounded, to global memory. `room` is
/// shared memory for as many rows that only this warp uses. Rows from `valid` on are not written.
template <int kDim, int kM>
__device__ __forceinline__ void write_rows(__nv_bfloat16* to, std::int64_t stride, int valid,
                                           const float (&c)[kM][kDim / 8][4], float factor,
                                           unsigned char* room) {
  const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4;
  __syncwarp();
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned char* row = room + (16 * m + 8 * half + group) * kRowBytes<kDim>;
        *reinterpret_cast<unsigned*>(row + ((n ^ group) << 4) + lane % 4 * 4) =
            pack_bf16(c[m][n][2 * half] * factor, c[m][n][2 * half + 1] * factor);
      }
  __syncwarp();
  constexpr int kGroups = kDim / 8, kRows = 32 / kGroups;  // rows that a warp writes at once
  const int column = lane % kGroups;
#pragma unroll
  for (int i = 0; i < 16 * kM / kRows; ++i) {
    const int row = i * kRows + lane / kGroups;
    const uint4 words =
        *reinterpret_cast<const uint4*>(room + row * kRowBytes<kDim> + ((column ^ row % 8) << 4));
    if (row < valid) *reinterpret_cast<uint4*>(to + row * stride + 8 * column) = words;
  }
}

/// Writes the rows as unscaled f32. A quarter of a warp writes 32 adjacent bytes of a row.
template <int kDim, int kM>
__device__ __forceinline__ void write_wide(float* to, std::int64_t stride, int valid,
                                           const float (&c)[kM][kDim / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * m + 8 * half + lane / 4;
      if (row >= valid) continue;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n)
        *reinterpret_cast<float2*>(to + row * stride + 8 * n + lane % 4 * 2) = {
            c[m][n][2 * half], c[m][n][2 * half + 1]};
    }
}

}  // namespace vfm::kernels
