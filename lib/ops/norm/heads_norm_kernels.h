// The kernels behind heads_norm.h, each for one part of a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

/// Plain pointers of one call. Rows of x, y, dy and dx are `stride` elements apart; a token's
/// numbers in `sums` and `products` are `step` apart.
struct HeadsNormArgs {
  std::int64_t tokens = 0, width = 0, stride = 0;
  std::int64_t all = 0;  // columns of the part on all ranks
  int step = 1;
  DType type = DType::f32;  // of x, y, dy and dx
  float epsilon = 0;
  const void* x = nullptr;
  const float* weight = nullptr;
  float* sums = nullptr;  // of squares
  bool summed = false;    // forward: `sums` are given
  void* y = nullptr;      // forward; null for the sums alone
  const void* dy = nullptr;
  float* products = nullptr;
  void* dx = nullptr;        // may be dy
  float* dweight = nullptr;  // [width] output, or null
  float* partial = nullptr;  // [chunks, width] scratch, with dweight
};

/// Number of tokens whose weight gradients are summed together.
inline constexpr std::int64_t kHeadsNormChunk = 32;

VFM_ISA_KERNEL(void, heads_norm_forward, const HeadsNormArgs& args)
// products = sum(dy weight x r) over this rank's columns.
VFM_ISA_KERNEL(void, heads_norm_products, const HeadsNormArgs& args)
// dx and dweight, from the products of all ranks.
VFM_ISA_KERNEL(void, heads_norm_gradients, const HeadsNormArgs& args)

}  // namespace vfm::ops
