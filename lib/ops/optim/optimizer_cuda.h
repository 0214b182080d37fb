// The CUDA versions behind adamw.h and sum_squares.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/optim/adamw.h"
#include "ops/optim/sum_squares.h"

namespace vfm::ops {

void adamw_cuda(std::span<const AdamwSlot> slots, const AdamwStep& step);
double clipped_adamw_cuda(std::span<const AdamwSlot> slots, const AdamwStep& step, double factor,
                          double most);
double sum_squares_cuda(std::span<const Extent> arrays);

}  // namespace vfm::ops
