// The CUDA versions behind conv2d.h. The arguments have been checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv2d.h"

namespace vfm::ops {

void conv2d_cuda(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                 const void* residual, void* y);
/// Images of x must lie one behind the other.
void conv2d_backward_data_cuda(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                               void* dx);
void conv2d_backward_weights_cuda(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                  float* dw, float* dbias);

}  // namespace vfm::ops
