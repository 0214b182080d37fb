// Takes rows from a matrix by index, and adds rows back to it: the CUDA version of
// lib/ops/pointwise/rows.h.
//
// Rows are added in the order in which they are listed. One block computes a part of the width of
// one row of the sum, without atomics, so the bits are the same on every GPU.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// y[i] = x[numbers[i]] for i < `rows`, or zeros for a negative number. A row has `bytes` bytes, an
/// even number. Fast if that is a multiple of 16 and both pointers are aligned to 16; an alignment
/// of 2 is required. Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value)
/// for negative sizes, 2^31 rows or more, or an odd number of bytes.
int gather_rows(const void* x, const std::int32_t* numbers, void* y, std::int64_t rows,
                std::int64_t bytes, CUstream_st* stream);

/// Device pointers of one call; D width.
struct RowSums {
  std::int64_t rows = 0;  ///< number of rows of `to` that change
  std::int64_t width = 0;
  const std::int32_t* row = nullptr;     ///< [rows]: their indices in `to`, all different
  const std::int32_t* begin = nullptr;   ///< [rows + 1]: start of each row's takers, then the end
  const std::int32_t* takers = nullptr;  ///< indices of rows of x to add
  const float* x = nullptr;              ///< [*, D]
  float* to = nullptr;                   ///< [*, D], += the sums
};

/// Returns like gather_rows; 1 (invalid value) for negative sizes or 2^31 rows or more.
int add_rows(const RowSums& call, CUstream_st* stream);

}  // namespace vfm::kernels
