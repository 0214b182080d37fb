// y = x W^T (+ b) for few rows of x: the CUDA version of lib/ops/matmul/few_rows.h.
//
// A warp computes some outputs of up to eight rows. It reads W once for all of them, as stored, and
// widens it in registers. Each lane sums every 32nd part of a row of W, in the order of k; then the
// lanes are summed. This order depends only on k and the alignment of W, so the bits of a row do
// not depend on the other rows or their number.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The type in which W is stored.
enum class FewRowsType { f32, bf16, int8 };

/// Device pointers of one call. Fast if x and W are aligned to 16 bytes and columns are a multiple
/// of 4; other cases give correct results.
struct FewRows {
  const float* x = nullptr;  ///< [rows, columns]
  const void* w = nullptr;   ///< [outputs, columns]
  FewRowsType type = FewRowsType::f32;
  const float* scales = nullptr;  ///< [outputs], factors on the sums; null if there are none
  const float* bias = nullptr;    ///< [outputs], added last; null if there is none
  float* y = nullptr;             ///< [rows, outputs]
  std::int64_t rows = 0, columns = 0, outputs = 0;
};

/// Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for negative
/// sizes, columns or outputs of 2^31 or more, or more than 8 * 65535 rows.
int few_rows(const FewRows& call, CUstream_st* stream);

}  // namespace vfm::kernels
