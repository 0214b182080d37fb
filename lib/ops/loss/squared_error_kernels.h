// The kernel behind squared_error.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/loss/squared_error.h"

namespace vfm::ops {

/// Writes out.sums, and out.seed unless scale is 0.
VFM_KERNEL(void, squared_error, const Tensor& output, const Tensor& target,
           std::span<const ErrorSample> samples, double scale, const SquaredError& out)

}  // namespace vfm::ops
