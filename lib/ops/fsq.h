// Finite scalar quantisation inside a network: every number becomes the value of the level that it
// is rounded to, and the gradient passes by the rounding as if it were not there
// (straight-through).
//
// With h, o and s of models/fsq.h, L levels and m = floor(L / 2): b = tanh(z + s) h - o and
//
//   value = round(b) / m,   d value / d z := (1 - tanh(z + s)^2) h / m
//
// The values are those of models::Fsq's codes. A NaN stays one, so that training notices. Source:
// Mentzer et al., "Finite Scalar Quantization" (2023).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/tape.h"

namespace vfm::ops {

/// z [..., levels.size()] f32, 1 to 16 numbers of at least 3 levels: the values, of its shape.
Tensor fsq(Tape& tape, const Tensor& z, std::span<const int> levels);

}  // namespace vfm::ops
