// Attention whose keys come in parts: adds the results of a part to those of the earlier parts. The
// CUDA version of the sum in lib/ops/attention/partial_attention.h, which has the formula. And the
// other order of log-sum-exps: ours is [H, S], cuDNN's is [S, H].
//
// Everything is f32. NaN in a part affects only its query and head.
// Shape letters: S queries of the pack, H heads, K head dim.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Device pointers of one call.
struct AttentionMerge {
  int heads = 0, head_dim = 0;
  std::int64_t queries = 0;            ///< S
  std::int64_t first = 0, end = 0;     ///< rows to add: first to end - 1
  bool begins = false;                 ///< write the sum, as this is the first part
  const float* out = nullptr;          ///< [S, H K]; null: zero, with a log-sum-exp of -infinity
  const float* log_sum_exp = nullptr;  ///< [H, S]
  float* out_sum = nullptr;            ///< [S, H K]
  float* log_sum_exp_sum = nullptr;    ///< [H, S]
};

/// Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes below
/// zero, rows beyond the queries, or a number of rows times heads of 2^31 or more.
int attention_merge(const AttentionMerge& call, CUstream_st* stream);

/// to [columns, rows] = from [rows, columns], transposed. Returns like attention_merge; 1 (invalid
/// value) for sizes below zero, or more than 2^31 tiles of 32 x 32.
int attention_turn(const float* from, float* to, std::int64_t rows, std::int64_t columns,
                   CUstream_st* stream);

}  // namespace vfm::kernels
