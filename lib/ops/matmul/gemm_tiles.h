// The product of a bf16 matrix with a transposed one, as a layer computes it, with the tiles of
// AMX.
//
// oneDNN 2.6 leaves half of the time of such a product to copying and waiting. Here both operands
// are packed into tiles: A by all threads, some rows at a time, and B by the thread that
// multiplies, in blocks that stay in its cache. Each element is summed over k in the same order,
// whatever the shape, so a row's bits do not depend on which other rows are multiplied.
// Shape letters: A [m, k], B [n, k], C [m, n].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/matmul/gemm.h"

namespace vfm::ops {

/// gemm() on this machine computes such a product by gemm_tiles().
bool has_gemm_tiles(const Matrix& a, const Matrix& b);
/// Returns the number of floats of scratch memory that gemm_tiles() needs.
std::int64_t gemm_tiles_scratch(std::int64_t m, std::int64_t n, std::int64_t k);
/// C = A B', or C += A B'; see gemm().
void gemm_tiles(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add);

/// Rows of A that are packed at a time, and of them those of two tiles; columns and depth of a
/// block of B.
inline constexpr std::int64_t kTileRows = 1024, kTileStrip = 32, kTileColumns = 256,
                              kTileDepth = 256;

struct GemmTilesArgs {
  std::int64_t m, n, k;
  const std::uint16_t *a, *b;
  std::int64_t a_stride, b_stride;
  void* c;
  std::int64_t c_stride;
  bool c_low, add;  ///< C is bf16, else f32
  float* packed;    ///< rows of A
  float* threads;   ///< scratch of each thread, of thread_floats
  std::int64_t thread_floats;
};

namespace amx {
void gemm_tiles(const GemmTilesArgs& args);
}

}  // namespace vfm::ops
