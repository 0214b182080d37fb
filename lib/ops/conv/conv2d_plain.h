// Convolutions on the CPU as matrix products of gathered pixels; conv2d.h has the meaning of the
// arguments.
//
// What a build without oneDNN computes with, what bf16 takes where oneDNN has no kernel for it, and
// in every build the second opinion of the tests.
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

/// Floats that each of them takes at most.
std::int64_t conv2d_plain_scratch(const Conv2d& conv);

}  // namespace vfm::ops
