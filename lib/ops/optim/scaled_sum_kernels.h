// The kernel behind scaled_sum.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

/// An array of floats with its type.
struct TypedArray {
  DType type = DType::f32;
  void* at = nullptr;
};

// out = a x + b y, n elements
VFM_ISA_KERNEL(void, scaled_sum, const TypedArray& out, float a, const TypedArray& x, float b,
               const TypedArray& y, std::int64_t n)

}  // namespace vfm::ops
