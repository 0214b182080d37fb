// A change of type within the network, which gradients pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// x, f32 or bf16, as `dtype`, f32 or bf16; x itself if it is that already.
Tensor cast(Tape& tape, const Tensor& x, DType dtype);

}  // namespace vfm::ops
