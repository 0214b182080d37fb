// Convolutions on the CPU as matrix products of gathered pixels; conv2d.h explains the arguments.
//
// Used in a build without oneDNN, for bf16 where oneDNN has no kernel, and as a reference for tests
// in every build.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv2d.h"

namespace vfm::ops {

void conv2d_plain(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                  const void* residual, void* y);
void conv2d_backward_data_plain(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                                void* dx);
void conv2d_backward_weights_plain(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                   float* dw, float* dbias);

/// Returns the most floats of scratch that any of these functions needs.
std::int64_t conv2d_plain_scratch(const Conv2d& conv);

}  // namespace vfm::ops
