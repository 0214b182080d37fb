// The kernels behind split_master.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

VFM_ISA_KERNEL(void, split_weights, const float* weights, std::uint16_t* high, std::uint16_t* low,
               std::int64_t n)
VFM_ISA_KERNEL(void, join_weights, const std::uint16_t* high, const std::uint16_t* low,
               float* weights, std::int64_t n)

}  // namespace vfm::ops
