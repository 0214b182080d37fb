// Tiles of bf16 matrices in shared memory and in a warp's registers. Device code only.
//
// A tile is rows of kDim bf16, one after the other. Within a row, groups of 16 bytes are permuted:
// group g of row r lies at place g ^ (r % 8). The eight rows that a matrix load reads, and the
// eight rows that a warp writes, then lie in different banks. kDim is 64 or 128; a tile begins at a
// multiple of 256 bytes.
// In registers a tile is [rows / 16][columns / 8] pieces of 16 x 8 (ptx/mma.cuh).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ptx/mma.cuh>

namespace vfm::kernels {

template <int kDim>
inline constexpr int kRowBytes = 2 * kDim;

/// Uses a shuffle, so that the compiler knows that the index is the same in all lanes.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
}

/// Returns the start of this lane's row of a 16 x 16 piece, for rows as operand a and for
/// transposed operands b. Piece i of the row of pieces is at this ^ (32 * i).
template <int kDim>
__device__ __forceinline__ SharedAddress lane_place_a() {
  const unsigned lane = threadIdx.x % 32;
  return lane % 16 * kRowBytes<kDim> + ((lane / 16 ^ lane % 8) << 4);
}
/// Returns the start for rows as two operands b: 16 columns of the product.
template <int kDim>
__device__ __forceinline__ SharedAddress lane_place_b() {
  const unsigned lane = threadIdx.x % 32;
  return (lane % 8 + lane / 16 * 8) * kRowBytes<kDim> + ((lane / 8 % 2 ^ lane % 8) << 4);
}

template <int kM, int kN>
__device__ __forceinline__ void clear(float (&c)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        c[m][n][i] = 0;
}

/// c += a b^T: a has 16 kM rows, b has 8 kN. `a` and `b` are addresses of tiles plus the lane's
/// places.
template <int kDim, int kM, int kN>
__device__ __forceinline__ void add_rows_by_rows(float (&c)[kM][kN][4], SharedAddress a,
                                                 SharedAddress b) {
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    unsigned left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m)
      load_matrices(left[m], (a ^ 32u * k) + m * 16 * kRowBytes<kDim>);
#pragma unroll
    for (int n = 0; n < kN / 2; ++n) {
      unsigned right[4];
      load_matrices(right, (b ^ 32u * k) + n * 16 * kRowBytes<kDim>);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(c[m][2 * n], left[m], right[0], right[1]);
        multiply_add(c[m][2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

}  // namespace vfm::kernels
