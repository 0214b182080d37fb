// The kernels of products, of their biases, and of matrices in 8 bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/block_format.h"
#include "ops/kernel.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/quantize.h"

namespace vfm::ops {

// The kernels behind bias.h.

// y[row][i] += bias[i] for i < width; rows of y are `stride` elements apart
VFM_ISA_KERNEL(void, add_bias, DType type, void* y, std::int64_t rows, std::int64_t stride,
               const float* bias, std::int64_t width)
// sum[i] += the sum over the rows of dy[row][i]
VFM_ISA_KERNEL(void, bias_gradient, DType type, const void* dy, std::int64_t rows,
               std::int64_t width, float* sum)

/// The most parts in which a GPU sums rows. Each part takes a float for every column.
inline constexpr std::int64_t kBiasParts = 256;

// The kernels behind block_rows.h.

struct BlockRowsArgs {
  BlockFormat format;
  const std::uint8_t* w;  // [outputs, bytes of a row]
  std::int64_t outputs, columns;
  const float* x = nullptr;     // [rows, columns]
  const float* bias = nullptr;  // [outputs], or null
  void* y = nullptr;            // [rows, outputs] f32; of dequantize_blocks [outputs, columns]
  std::int64_t rows = 0;
};
// y = x w^T (+ bias)
VFM_CPU_KERNEL(void, few_rows_of_blocks, const BlockRowsArgs& args)
// y = w in `type`
VFM_CPU_KERNEL(void, dequantize_blocks, const BlockRowsArgs& args, DType type)

// The kernel behind few_rows.h.

struct FewRowsArgs {
  const float* x;       // [rows, columns]
  const void* w;        // [outputs, columns]
  DType type;           // of w: f32, bf16; on the CPU also f16; u8 holds int8 codes
  const float* scales;  // [outputs], or null
  const float* bias;    // [outputs], or null
  float* y;             // [rows, outputs]
  std::int64_t rows, columns, outputs;
};
VFM_ISA_KERNEL(void, few_rows, const FewRowsArgs& args)

// The kernel behind gemm.h, which explains the arguments.

VFM_KERNEL(void, gemm, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
           const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add)

/// Bytes of cuBLASLt's workspace on a GPU, shared by all products. Hopper's algorithms use 32 MiB
/// or more.
inline constexpr std::size_t kGemmWorkspace = std::size_t{64} << 20;

namespace cuda {
void set_gemm_cache(std::string path);
}

// The inner part of gemm_plain() of gemm_cpu.h: one tile of the result.

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

// The kernels behind low_rank.h.

// The first `narrow` columns of y [rows, wide] += scale x [rows, narrow]; both have `type`.
VFM_ISA_KERNEL(void, add_scaled_columns, DType type, void* y, std::int64_t wide, const void* x,
               std::int64_t narrow, std::int64_t rows, float scale)

// The kernels behind quantize.h.

VFM_KERNEL(void, quantize, const Tensor& x, const Quantized& result)
VFM_KERNEL(void, largest_magnitude, const Tensor& x, const Tensor& largest)
VFM_KERNEL(void, quantize_part, const Tensor& x, const Tensor& largest, const Quantized& result)
VFM_KERNEL(void, quantize_gelu, const Tensor& x, const Quantized& result)

VFM_KERNEL(void, largest_of_rows, const Tensor& x, const Tensor& largest)
VFM_KERNEL(void, quantize_rows, const Tensor& x, const Tensor& largest, const QuantizedRows& rows)
// Dequantises to x [rows, columns] of `type`; codes and scales are plain pointers.
struct RowCodes {
  const std::uint8_t* codes;
  const float* scales;
  bool e4m3;
  std::int64_t rows, columns;
};
VFM_ISA_KERNEL(void, dequantize_rows, const RowCodes& codes, DType type, void* x)

}  // namespace vfm::ops
