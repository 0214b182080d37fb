// Sums of tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// target += term, element by element; f32 or bf16 each, as many elements. Not recorded.
void add_in_place(const Tensor& target, const Tensor& term);

/// own = ((x_0 + x_1) + x_2) + ..., element by element, in f32, rounded once: x_place is `own` and
/// the others, as large, are others[0], others[1], ... [any, ...]. f32 or bf16, all alike. Not
/// recorded. What ranks have of the same, in the order of the ranks (dist/group.h).
void add_in_order(const Tensor& own, int place, const Tensor& others);

/// [N, M] + the first M columns of [N, >= M]; f32.
Tensor add(Tape& tape, const Tensor& a, const Tensor& b);

}  // namespace vfm::ops
