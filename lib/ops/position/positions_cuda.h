// The CUDA version behind learned_positions, for a step of 1. The arguments have been checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/position/positions.h"

namespace vfm::ops {

Tensor learned_positions_cuda(Tape& tape, const std::array<Tensor, 3>& tables,
                              const std::vector<TokenGrid>& grids, std::int64_t tokens, bool unit);

Tensor sinusoid_cuda(const Tensor& times, int width);

}  // namespace vfm::ops
