// Heads as E4M3 with a scale for each head of each sample, and back: the CUDA version of
// lib/ops/attention/head_codes.h.
//
// The scale is that of attention_fp8.h, so what was rounded here is rounded there to the same bits.
// Ranks that have parts of a sample find the largest magnitudes of their parts, and the scale is
// that of the largest of all. A maximum depends on no order, so the bits are the same on every GPU,
// and on the CPU.
// Shape letters: S rows, H heads, K head dim, R samples.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Rows of one sample, at most kHeadRows.
struct HeadRows {
  std::int32_t sample = 0, first = 0, count = 0;
};
inline constexpr int kHeadRows = 64;

/// [S, H K], of which each row is in one item.
struct HeadCodes {
  const HeadRows* items = nullptr;
  std::int64_t item_count = 0;
  int heads = 0;
  int head_dim = 0;  ///< a multiple of 16
  std::int64_t samples = 0;
  const std::uint32_t* largest = nullptr;  ///< [R, H]; of largest_of_heads() not read
};

/// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes or
/// pointers that are not as said. Matrices are aligned to 16 bytes.
/// largest [R, H]: the bits of the largest |x|, 0 where there is no row. x is bf16.
int largest_of_heads(const HeadCodes& call, const void* x, std::uint32_t* largest,
                     CUstream_st* stream);
/// all [count]: of `parts` times as many magnitudes, one part behind the other, the largest.
int largest_of_parts(const std::uint32_t* largest, int parts, std::int64_t count,
                     std::uint32_t* all, CUstream_st* stream);
/// 801 (not supported) on a GPU below compute capability 9.0, as there is no code for 8.9, the
/// first that has E4M3.
int quantize_heads(const HeadCodes& call, const void* x, std::uint8_t* codes, CUstream_st* stream);
/// x, bf16, is scale times code, rounded.
int restore_heads(const HeadCodes& call, const std::uint8_t* codes, void* x, CUstream_st* stream);

}  // namespace vfm::kernels
