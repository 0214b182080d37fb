// Sums of tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// target += term, element by element. Each is f32 or bf16; both have the same number of elements.
/// Not recorded.
void add_in_place(const Tensor& target, const Tensor& term);

/// own = ((x_0 + x_1) + x_2) + ..., element by element, in f32, rounded once. x_place is `own`; the
/// other terms are others[0], others[1], ... in order, with `others` [any, ...]. All have the same
/// size and dtype, f32 or bf16. Not recorded. Used to add up the tensors of ranks in the order of
/// the ranks (dist/group.h).
void add_in_order(const Tensor& own, int place, const Tensor& others);

/// Adds a [N, M] and the first M columns of b [N, >= M]; f32.
Tensor add(Tape& tape, const Tensor& a, const Tensor& b);

}  // namespace vfm::ops
