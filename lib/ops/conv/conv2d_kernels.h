// The kernels behind conv2d.h; the CPU version uses oneDNN or conv2d_plain.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv2d.h"
#include "ops/kernel.h"

namespace vfm::ops {

VFM_KERNEL(void, conv2d, const Conv2d& conv, DType dtype, const void* x, const void* w,
           const float* bias, const void* residual, void* y)
// On a GPU the images of x must lie one behind the other.
VFM_KERNEL(void, conv2d_backward_data, const Conv2d& conv, DType dtype, const void* dy,
           const void* w, void* dx)
VFM_KERNEL(void, conv2d_backward_weights, const Conv2d& conv, DType dtype, const void* x,
           const void* dy, float* dw, float* dbias)

/// Floats of scratch of the CPU versions.
std::int64_t conv2d_scratch(const Conv2d& conv, DType dtype, bool bias, bool residual);
std::int64_t conv2d_backward_data_scratch(const Conv2d& conv, DType dtype);
std::int64_t conv2d_backward_weights_scratch(const Conv2d& conv, DType dtype);

/// On a GPU the gradient of a bias is summed in kConvBiasParts parts, and the gradient of the
/// weights in chunks of kConvChunk rows. conv2d_chunks_at_once() returns the number of chunks that
/// fill a GPU.
inline constexpr std::int64_t kConvBiasParts = 256, kConvChunk = 8192;
std::int64_t conv2d_chunks_at_once(const Conv2d& conv);
/// Whether the weights must be copied into another order for the product.
bool conv2d_arranges(const Conv2d& conv, bool back);

}  // namespace vfm::ops
