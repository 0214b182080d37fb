// Attention whose keys come in parts: the results of a part are added to those of the parts before.
// The CUDA version of the sum in lib/ops/attention/partial_attention.h, where the formula is.
//
// All in f32. A part's NaN comes through to its query and head.
// Shape letters: S queries of the pack, H heads, K head dim.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Device pointers of one call.
struct AttentionMerge {
  int heads = 0, head_dim = 0;
  std::int64_t queries = 0;            ///< S
  std::int64_t first = 0, end = 0;     ///< rows that are added
  bool begins = false;                 ///< there is no sum yet: it is written
  const float* out = nullptr;          ///< [S, H K]; null: zero, of a log-sum-exp of -infinity
  const float* log_sum_exp = nullptr;  ///< [H, S]
  float* out_sum = nullptr;            ///< [S, H K]
  float* log_sum_exp_sum = nullptr;    ///< [H, S]
};

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes below
/// zero, rows beyond the queries, or 2^31 rows and heads or more.
int attention_merge(const AttentionMerge& call, CUstream_st* stream);

}  // namespace vfm::kernels
