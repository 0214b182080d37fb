// Sums of tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// target += term, element by element; f32 or bf16 each, as many elements. Not recorded.
void add_in_place(const Tensor& target, const Tensor& term);

/// [N, M] + the first M columns of [N, >= M]; f32.
Tensor add(Tape& tape, const Tensor& a, const Tensor& b);

}  // namespace vfm::ops
