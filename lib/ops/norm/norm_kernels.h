// The kernels of norms over rows of a matrix.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

// The kernels behind heads_norm.h, each for one part of a row.

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

// The kernels behind layer_norm.h; f32 throughout.

/// Plain pointers of one call.
struct LayerNormArgs {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0;
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  float* y = nullptr;             // like x; forward
  const float* dy = nullptr;      // like x; backward
  float* dx = nullptr;            // like x; may be dy
  float* dboth = nullptr;         // [2, width] output: of weight and bias, or null
  float* partial = nullptr;       // [chunks, 2, width] scratch, with dboth
};

/// Number of rows whose gradients of weight and bias are summed together.
inline constexpr std::int64_t kLayerNormChunk = 32;
/// Numbers of a row that the GPU's backward pass keeps between its kernels.
inline constexpr std::int64_t kLayerNormNumbers = 5;

VFM_ISA_KERNEL(void, layer_norm_forward, const LayerNormArgs& args)
VFM_ISA_KERNEL(void, layer_norm_backward, const LayerNormArgs& args)

// The kernels behind pixel_norm.h.

/// Plain pointers of one call. x and y have `type`.
struct PixelNormArgs {
  std::int64_t pixels = 0, channels = 0;
  DType type = DType::f32;
  bool silu = false;
  const void* x = nullptr;
  const float* weight = nullptr;
  void* y = nullptr;  // may be x
};

VFM_ISA_KERNEL(void, pixel_norm, const PixelNormArgs& args)

// The kernels behind rmsnorm.h; f32 throughout.

VFM_KERNEL(void, rmsnorm_forward, const Tensor& x, const Tensor& weight, float epsilon,
           const Tensor& y)
/// Rows over which the weight's gradient is summed first on a GPU, before those sums are added.
inline constexpr std::int64_t kRmsnormChunk = 16;

/// dx may be dy. dweight holds zeros, or is undefined if not wanted.
VFM_KERNEL(void, rmsnorm_backward, const Tensor& x, const Tensor& weight, float epsilon,
           const Tensor& dy, const Tensor& dx, const Tensor& dweight)

}  // namespace vfm::ops
