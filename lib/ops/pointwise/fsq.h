// Finite scalar quantisation inside a network: rounds every number to the nearest of its levels.
// The gradient ignores the rounding (straight-through).
//
// With h, o and s of models/fsq.h, L levels and m = floor(L / 2): b = tanh(z + s) h - o and
//
//   value = round(b) / m,   d value / d z := (1 - tanh(z + s)^2) h / m
//
// The values equal those of models::Fsq's codes. NaN stays NaN, so that training notices. Source:
// Mentzer et al., "Finite Scalar Quantization" (2023).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "ops/tape.h"

namespace vfm::ops {

inline constexpr std::size_t kMostFsqLevels = 16;

/// h, o, s and m of each number, as above, and the lowest and highest of its levels.
struct FsqLevels {
  std::size_t dimensions = 0;
  std::array<float, kMostFsqLevels> half{}, offset{}, shift{}, middle{}, lowest{}, highest{};
};
/// Throws Error unless there are 1 to kMostFsqLevels numbers, each of at least 3 levels.
FsqLevels fsq_levels(std::span<const int> levels);

/// Returns the values, in z's shape. z is [..., levels.size()] f32, with 1 to 16 numbers of at
/// least 3 levels each.
Tensor fsq(Tape& tape, const Tensor& z, std::span<const int> levels);

}  // namespace vfm::ops
