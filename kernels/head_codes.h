// Converts heads of queries, keys and values to E4M3 and back, with one scale for all queries, one
// for all keys and one for all values: the CUDA version of lib/ops/attention/attention_fp8.h.
//
// Ranks that have parts of a pack find the largest magnitudes of their parts; the scales follow
// from the largest of all. A maximum does not depend on order, so the bits are the same on every
// GPU and on the CPU.
// Shape letters: S rows, K head dim, P parts.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// A matrix [S, (queries + keys + values) K], aligned to 16 bytes. Any of the three may be 0.
struct HeadCodes {
  std::int64_t rows = 0;
  int queries = 0, keys = 0, values = 0;  ///< heads, in this order
  int head_dim = 0;                       ///< a multiple of 16
  /// Bits of the largest |q|, |k| and |v|, [3]; ignored by largest_of_kinds().
  const std::uint32_t* largest = nullptr;
};

/// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
/// sizes or pointers that violate the comments here. largest_of_kinds() writes largest [3], 0 for a
/// kind that the matrix does not have. x is bf16.
int largest_of_kinds(const HeadCodes& call, const void* x, std::uint32_t* largest,
                     CUstream_st* stream);
/// Writes all [3], the largest of `parts` parts. `largest` is [P, 3].
int largest_of_parts(const std::uint32_t* largest, int parts, std::uint32_t* all,
                     CUstream_st* stream);
/// Returns 801 (not supported) on a GPU below compute capability 9.0. (8.9, the first with E4M3,
/// has no code here.)
int quantize_heads(const HeadCodes& call, const void* x, std::uint8_t* codes, CUstream_st* stream);
/// Writes x, bf16: scale times code, rounded.
int restore_heads(const HeadCodes& call, const std::uint8_t* codes, void* x, CUstream_st* stream);
/// Writes scales [4]: those of queries, keys and values, and the inverse of the values'.
int head_scales(const std::uint32_t* largest, float* scales, CUstream_st* stream);

}  // namespace vfm::kernels
