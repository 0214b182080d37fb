// Converts heads to E4M3 and back, with a scale for each head of each sample: the CUDA version of
// lib/ops/attention/attention_fp8.h.
//
// The scale is that of attention_fp8.h, so values rounded here are rounded there to the same bits.
// Ranks that have parts of a sample find the largest magnitudes of their parts; the scale follows
// from the largest of all. A maximum does not depend on order, so the bits are the same on every
// GPU and on the CPU.
// Shape letters: S rows, H heads, K head dim, R samples.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Consecutive rows of one sample, at most kHeadRows.
struct HeadRows {
  std::int32_t sample = 0, first = 0, count = 0;
};
inline constexpr int kHeadRows = 64;

/// A matrix [S, H K]. Each row is in exactly one item.
struct HeadCodes {
  const HeadRows* items = nullptr;
  std::int64_t item_count = 0;
  int heads = 0;
  int head_dim = 0;  ///< a multiple of 16
  std::int64_t samples = 0;
  const std::uint32_t* largest = nullptr;  ///< [R, H]; ignored by largest_of_heads()
};

/// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
/// sizes or pointers that violate the comments here. Matrices are aligned to 16 bytes.
/// largest_of_heads() writes largest [R, H]: the bits of the largest |x|, 0 for a sample without
/// rows. x is bf16.
int largest_of_heads(const HeadCodes& call, const void* x, std::uint32_t* largest,
                     CUstream_st* stream);
/// Writes all [count], the largest of `parts` parts. `largest` is [parts, count].
int largest_of_parts(const std::uint32_t* largest, int parts, std::int64_t count,
                     std::uint32_t* all, CUstream_st* stream);
/// Returns 801 (not supported) on a GPU below compute capability 9.0. (8.9, the first with E4M3,
/// has no code here.)
int quantize_heads(const HeadCodes& call, const void* x, std::uint8_t* codes, CUstream_st* stream);
/// Writes x, bf16: scale times code, rounded.
int restore_heads(const HeadCodes& call, const std::uint8_t* codes, void* x, CUstream_st* stream);

}  // namespace vfm::kernels
