// The kernel behind pixel_error.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/loss/pixel_error.h"

namespace vfm::ops {

/// Writes out.sums, and out.seed unless scale is 0.
VFM_KERNEL(void, pixel_error, const Tensor& output, const Tensor& target,
           const PixelWeights& weights, double scale, const PixelError& out)

}  // namespace vfm::ops
