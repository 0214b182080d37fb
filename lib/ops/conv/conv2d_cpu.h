// The CPU versions behind conv2d.h, by oneDNN or conv2d_plain.h. The arguments have been checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv2d.h"

namespace vfm::ops {

void conv2d_cpu(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                const void* residual, void* y);
void conv2d_backward_data_cpu(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                              void* dx);
void conv2d_backward_weights_cpu(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                 float* dw, float* dbias);

}  // namespace vfm::ops
