// The kernels behind adamw.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/optim/adamw.h"

namespace vfm::ops {

VFM_KERNEL(void, adamw, std::span<const AdamwSlot> slots, const AdamwStep& step)
VFM_KERNEL(double, clipped_adamw, std::span<const AdamwSlot> slots, const AdamwStep& step,
           double factor, double most)

// Updates one chunk of a parameter on the calling thread.
VFM_CPU_KERNEL(void, adamw_chunk, const AdamwSlot& slot, const AdamwStep& step, float correction1,
               float correction2, std::int64_t begin, std::int64_t end)

}  // namespace vfm::ops
