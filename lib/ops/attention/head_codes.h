// Converts heads of queries, keys and values to E4M3 and back, with a scale for each head of each
// sample. Ranks that share tokens send them in this form if attention is in FP8 (attention_fp8.h).
//
// The scale is that of attention in FP8: it follows from all rows of the sample, on all ranks, so
// the largest magnitudes of the parts are combined first. Attention then rounds the received values
// to the codes that were sent, and gives the same bits as on one rank.
// Not recorded: for inference. CPU and GPU give the same bits. Thread-safety: as quantize.h.
// Shape letters: S rows, H heads, K head dim, R samples, P parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// Number of rows of each sample, in order, possibly 0; and K, a multiple of 16.
struct HeadLayout {
  std::vector<std::int64_t> lengths;
  int head_dim = 0;
};

/// Returns the bits of the largest |x| of each head, i32 [R, H], for x bf16 [S, H K]. The bits are
/// ordered as the values are; 0 for a sample without rows. Throws Error if tensors do not fit the
/// layout, as do all functions here.
Tensor largest_of_heads(const Tensor& x, const HeadLayout& layout);
/// Returns the largest of P parts, [R, H]. `largest` is [P R, H], one part below the other.
Tensor largest_of_parts(const Tensor& largest, std::int64_t samples);
/// Returns codes E4M3 [S, H K]. `largest` [R, H] is over all parts. Throws Error on a GPU without
/// FP8.
Tensor quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest);
/// Returns bf16 [S, H K]: scale times code, rounded.
Tensor restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest);

}  // namespace vfm::ops
