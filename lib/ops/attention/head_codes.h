// Heads of queries, keys and values as E4M3, with a scale for each head of each sample, and back:
// how ranks that share tokens send them where attention is in FP8 (attention_fp8.h).
//
// The scale is that of attention in FP8, of all rows of the sample, wherever they are: the largest
// magnitudes of their parts come together first. So attention rounds what was sent to the codes
// that it was sent as, and gives the bits that it gives one rank.
// Not recorded: for inference. CPU and GPU give the same bits. Thread-safety: as quantize.h.
// Shape letters: S rows, H heads, K head dim, R samples, P parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// Rows of each sample, one after the other, some none; and K, a multiple of 16.
struct HeadLayout {
  std::vector<std::int64_t> lengths;
  int head_dim = 0;
};

/// x bf16 [S, H K] to i32 [R, H]: the bits of the largest |x|, ordered as the values are; 0 of no
/// row. Throws Error for what does not fit the layout, as all here.
Tensor largest_of_heads(const Tensor& x, const HeadLayout& layout);
/// Of P parts, [P R, H], the samples of one after those of the one before, the largest: [R, H].
Tensor largest_of_parts(const Tensor& largest, std::int64_t samples);
/// E4M3 [S, H K]. `largest` [R, H] is that of all parts. Throws Error on a GPU without FP8.
Tensor quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest);
/// bf16 [S, H K]: scale times code, rounded.
Tensor restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest);

}  // namespace vfm::ops
