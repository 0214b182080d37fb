// y = x W^T (+ b) of few rows of x: the CUDA version of lib/ops/matmul/few_rows.h.
//
// A warp makes some outputs of up to eight rows: W is read once for these, as it is stored, and
// widened in registers. Each lane sums every 32nd part of a row of W, in the order of k, and then
// the lanes are summed: an order that k and the alignment of W alone decide, so that the bits of a
// row do not depend on what other rows there are, nor on how many.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// What W is stored in; int8: signed numbers.
enum class FewRowsType { f32, bf16, int8 };

/// Device pointers of one call. Fast where x and W are aligned to 16 bytes and columns are a
/// multiple of 4; right otherwise.
struct FewRows {
  const float* x = nullptr;  ///< [rows, columns]
  const void* w = nullptr;   ///< [outputs, columns]
  FewRowsType type = FewRowsType::f32;
  const float* scales = nullptr;  ///< [outputs], what sums are multiplied with; or null
  const float* bias = nullptr;    ///< [outputs], added to that; or null
  float* y = nullptr;             ///< [rows, outputs]
  std::int64_t rows = 0, columns = 0, outputs = 0;
};

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for negative
/// sizes, columns or outputs of 2^31 or more, or more than 8 * 65535 rows.
int few_rows(const FewRows& call, CUstream_st* stream);

}  // namespace vfm::kernels
