// The kernels behind conv2d.h; on the CPU by oneDNN or conv2d_plain.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv2d.h"
#include "ops/kernel.h"

namespace vfm::ops {

VFM_KERNEL(void, conv2d, const Conv2d& conv, DType dtype, const void* x, const void* w,
           const float* bias, const void* residual, void* y)
// On a GPU images of x must lie one behind the other.
VFM_KERNEL(void, conv2d_backward_data, const Conv2d& conv, DType dtype, const void* dy,
           const void* w, void* dx)
VFM_KERNEL(void, conv2d_backward_weights, const Conv2d& conv, DType dtype, const void* x,
           const void* dy, float* dw, float* dbias)

/// Floats that the CPU's versions take besides.
std::int64_t conv2d_scratch(const Conv2d& conv, DType dtype, bool bias, bool residual);
std::int64_t conv2d_backward_data_scratch(const Conv2d& conv, DType dtype);
std::int64_t conv2d_backward_weights_scratch(const Conv2d& conv, DType dtype);

/// On a GPU the sums for a bias are made of so many parts, those for weights of chunks of so many
/// rows, of which so many at once fill a GPU.
inline constexpr std::int64_t kConvBiasParts = 256, kConvChunk = 8192;
std::int64_t conv2d_chunks_at_once(const Conv2d& conv);
/// Whether the weights must be copied in another order for the product.
bool conv2d_arranges(const Conv2d& conv, bool back);

}  // namespace vfm::ops
