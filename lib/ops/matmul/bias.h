// The bias of a product: a vector that is added to every row of the result.
//
// A product is rounded to the type of its result first. The bias is then added in f32, and a bf16
// result is rounded once more. A caller that wants one rounding asks for an f32 result.
//
// Where ranks each have a summand of the result, the bias is added to a rank's own rows after the
// sum, hence once for any number of ranks. Its gradient is then the sum over this rank's rows
// alone. The bias is a parameter that all these ranks have, and the sum over the ranks is made
// where gradients of such parameters are summed (nn/placement.h, train/step/gradients.h). Where
// ranks have some of the columns each, a rank has these elements of the bias, adds them to all
// rows, and its gradient is complete.
//
// The CPU and a GPU give the same bits of a result. Gradients are sums over rows in f32, in an
// order that depends on the device and on nothing else.
// Shape letters: N rows, W columns, M elements of the bias.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/tape.h"

namespace vfm::ops {

/// Adds bias [M] f32 to columns first..first + M - 1 of y [N, W], f32 or bf16. Not recorded. Throws
/// Error for other shapes and types.
void add_bias(const Tensor& y, std::int64_t first, const Tensor& bias);

/// Adds bias [M] f32 to y [N, M] in place, and records the bias's gradient; does nothing if the
/// bias is undefined. y is the result of an op whose backward pass does not read it, and no op has
/// read it yet. Products do so themselves (LinearWeight::bias); this is for exchanges after a
/// product in FP8.
void add_bias(Tape& tape, const Tensor& y, const Tensor& bias);

}  // namespace vfm::ops
