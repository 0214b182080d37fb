// The CUDA versions of fsq.h and pixel_error.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/loss/pixel_error.h"
#include "ops/pointwise/fsq.h"

namespace vfm::ops {

/// Values of z to `out`; with `gradient`, which is that of the values, the gradient of z.
void fsq_cuda(const Tensor& z, const FsqLevels& levels, const Tensor& gradient, const Tensor& out);

/// Fills out.sums, and out.seed unless scale is 0.
void pixel_error_cuda(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                      double scale, const PixelError& out);

}  // namespace vfm::ops
