// Rows taken from a matrix by their numbers, and added back to it: the CUDA version of
// lib/ops/pointwise/rows.h.
//
// Added rows are taken in the order in which they are listed, one block a row of the sum and part
// of its width: no atomics, and the bits are the same on every GPU. Thread-safety: launches on the
// given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// y[i] = x[numbers[i]] for i below `rows`, or zeros for a negative number; rows of `bytes` bytes,
/// an even number. Fast where that is a multiple of 16 and both are aligned to it; right where they
/// are aligned to 2. Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value)
/// for negative sizes, 2^31 rows or more, or an odd number of bytes.
int gather_rows(const void* x, const std::int32_t* numbers, void* y, std::int64_t rows,
                std::int64_t bytes, CUstream_st* stream);

/// Device pointers of one call; D width.
struct RowSums {
  std::int64_t rows = 0;  ///< that are added to
  std::int64_t width = 0;
  const std::int32_t* row = nullptr;     ///< [rows]: where they stand in `to`; all different
  const std::int32_t* begin = nullptr;   ///< [rows + 1], into takers
  const std::int32_t* takers = nullptr;  ///< rows of x
  const float* x = nullptr;              ///< [*, D]
  float* to = nullptr;                   ///< [*, D], += the sums
};

/// Returns as gather_rows does; 1 (invalid value) for negative sizes or 2^31 rows or more.
int add_rows(const RowSums& call, CUstream_st* stream);

}  // namespace vfm::kernels
