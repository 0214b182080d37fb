// Shared by the kernels of attention_fp8.h: the layout of the scratch, and tiles of bytes in shared
// memory. Device code, except fp8_room().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "../attention_fp8.h"
#include "attention_tile.cuh"
#include "fp8.cuh"

namespace vfm::kernels {

/// Parts of the scratch. q [S, H, K] and k [L, G, K] are the copies. v is [G, K, columns]: a
/// sample's keys begin at column first_column(), a multiple of 16, and are padded with zeros to a
/// multiple of 16. Within 16 columns the keys are in the order of value_place().
struct Fp8Room {
  std::uint8_t *q, *k, *v;
  unsigned* largest;  ///< bits of the largest magnitude: [R, H + 2 G]; queries, keys, values
  std::int64_t columns;
};

inline __host__ __device__ std::int64_t fp8_columns(const AttentionFp8& a) {
  return 16 * ((a.keys + 15) / 16 + a.samples);
}

/// K is a multiple of 16, so every part is aligned to 16 bytes.
inline __host__ __device__ Fp8Room fp8_room(const AttentionFp8& a) {
  const Attention& c = a.call;
  Fp8Room room{};
  room.columns = fp8_columns(a);
  room.q = static_cast<std::uint8_t*>(a.room);
  room.k = room.q + c.queries * c.heads * c.head_dim;
  room.v = room.k + a.keys * c.key_heads * c.head_dim;
  room.largest =
      reinterpret_cast<unsigned*>(room.v + std::int64_t{c.key_heads} * c.head_dim * room.columns);
  return room;
}

/// In attention_fp8_copies.cu: fills the scratch. The arguments are not checked here.
int attention_fp8_copies(const AttentionFp8& call, cudaStream_t stream);

/// Each sample has 16 more columns than keys, enough for the rounding up to its first column.
__device__ __forceinline__ std::int64_t first_column(const AttentionItem& item) {
  return 16 * ((std::int64_t{item.key_start} + 15) / 16 + item.sample);
}

/// Returns the place of key `key` among 16. Probabilities are computed as pairs of columns 2 t and
/// 2 t + 1 of tiles 8 wide, and used as four columns from 4 t on (ptx/fp8.cuh). With the keys in
/// this order, a lane already holds the probabilities that it needs.
__device__ __forceinline__ int value_place(int key) {
  return key % 8 / 2 * 4 + key / 8 % 2 * 2 + key % 2;
}

/// The number with which a group's index is XORed in row `row` of a tile of rows of kBytes, so that
/// the eight rows that a matrix load reads lie in different banks. Repeats every 8 rows.
template <int kBytes>
__device__ __forceinline__ unsigned fp8_swap(unsigned row) {
  return row / (128 / kBytes) % (kBytes / 16);
}

/// Return the start of this lane's row of a 16 x 32 piece, as operand a or as two operands b. Piece
/// i of the row of pieces is at this ^ (32 * i).
template <int kBytes>
__device__ __forceinline__ SharedAddress fp8_place_a() {
  const unsigned lane = threadIdx.x % 32, row = lane % 16;
  return row * kBytes + ((lane / 16 ^ fp8_swap<kBytes>(row)) << 4);
}
template <int kBytes>
__device__ __forceinline__ SharedAddress fp8_place_b() {
  const unsigned lane = threadIdx.x % 32, row = lane % 8 + lane / 16 * 8;
  return row * kBytes + ((lane / 8 % 2 ^ fp8_swap<kBytes>(row)) << 4);
}

/// Starts copying kRows rows of kBytes, `stride` bytes apart. Rows from `rows` on, and groups of 16
/// bytes from `groups` on, become zero. All threads of the block must call it.
template <int kBytes, int kRows>
__device__ __forceinline__ void copy_bytes(SharedAddress to, const std::uint8_t* from,
                                           std::int64_t stride, int rows, int groups) {
  constexpr int kGroups = kBytes / 16, kStep = kTileThreads / kGroups;
  static_assert(kRows % kStep == 0 && kStep % 8 == 0);
  const int thread = static_cast<int>(threadIdx.x), row = thread / kGroups;
  const int group = thread % kGroups;
  const SharedAddress place =
      to + row * kBytes + ((group ^ fp8_swap<kBytes>(static_cast<unsigned>(row))) << 4);
  const std::uint8_t* source = from + row * stride + 16 * group;
#pragma unroll
  for (int i = 0; i < kRows / kStep; ++i) {
    const bool inside = row + i * kStep < rows && group < groups;
    copy_async_16(place + i * kStep * kBytes, inside ? source + i * kStep * stride : from, inside);
  }
}

/// c = a b^T: a has 16 kM rows, b has 8 kN rows of kBytes. a and b are addresses of tiles plus the
/// lane's places.
template <int kBytes, int kM, int kN>
__device__ __forceinline__ void fp8_rows_by_rows(float (&c)[kM][kN][4], SharedAddress a,
                                                 SharedAddress b) {
  clear(c);
#pragma unroll
  for (int k = 0; k < kBytes / 32; ++k) {
    unsigned left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m)
      load_matrices(left[m], (a ^ 32u * k) + m * 16 * kBytes);
#pragma unroll
    for (int n = 0; n < kN / 2; ++n) {
      unsigned right[4];
      load_matrices(right, (b ^ 32u * k) + n * 16 * kBytes);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add_e4m3(c[m][2 * n], left[m], right[0], right[1]);
        multiply_add_e4m3(c[m][2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

/// c += a b^T: a in registers, b as above.
template <int kBytes, int kM, int kN>
__device__ __forceinline__ void fp8_add_rows(float (&c)[kM][kN][4],
                                             const unsigned (&a)[kM][kBytes / 32][4],
                                             SharedAddress b) {
#pragma unroll
  for (int k = 0; k < kBytes / 32; ++k)
#pragma unroll
    for (int n = 0; n < kN / 2; ++n) {
      unsigned right[4];
      load_matrices(right, (b ^ 32u * k) + n * 16 * kBytes);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add_e4m3(c[m][2 * n], a[m][k], right[0], right[1]);
        multiply_add_e4m3(c[m][2 * n + 1], a[m][k], right[2], right[3]);
      }
    }
}

}  // namespace vfm::kernels
