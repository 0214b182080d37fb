// The inner part of gemm_plain.h: one tile of the result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

/// Size of a tile, and the depth of the sum that is packed at a time, so that both fit the
/// second-level cache.
inline constexpr std::int64_t kGemmTileRows = 192, kGemmTileColumns = 128, kGemmTileDepth = 256;
/// Floats of scratch memory for a tile: its sums and the packed parts of A and B.
inline constexpr std::int64_t kGemmTileRoom = kGemmTileRows * kGemmTileColumns +
                                              kGemmTileRows * kGemmTileDepth +
                                              kGemmTileDepth * kGemmTileColumns;

/// Element (i, j) is data[i * row_stride + j * column_stride]; one of the strides is 1.
struct GemmOperand {
  const void* data = nullptr;
  DType type = DType::f32;
  std::int64_t row_stride = 0, column_stride = 0;
};

/// C = A B or C += A B: A is rows x depth, B is depth x columns, C has rows of c_stride elements.
struct GemmTile {
  std::int64_t rows = 0, columns = 0, depth = 0;  ///< at most a tile's rows and columns
  GemmOperand a, b;
  void* c = nullptr;
  DType c_type = DType::f32;  ///< f32 if `add`
  std::int64_t c_stride = 0;
  bool add = false;
  float* room = nullptr;  ///< kGemmTileRoom floats
};

VFM_CPU_KERNEL(void, gemm_tile, const GemmTile& tile)

}  // namespace vfm::ops
