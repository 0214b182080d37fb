// A change of dtype within the network. Gradients pass through it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// Returns x as `dtype`, or x itself if it has that dtype. Both types are f32 or bf16.
Tensor cast(Tape& tape, const Tensor& x, DType dtype);

}  // namespace vfm::ops
