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

#include <array>
#include <cstddef>
#include <span>

#include "ops/tape.h"

namespace vfm::ops {

inline constexpr std::size_t kMostFsqLevels = 16;

/// What is called h, o, s and m above of each of the numbers, and the bounds of its levels.
struct FsqLevels {
  std::size_t dimensions = 0;
  std::array<float, kMostFsqLevels> half{}, offset{}, shift{}, middle{}, lowest{}, highest{};
};
/// Throws Error unless there are 1 to kMostFsqLevels numbers of at least 3 levels.
FsqLevels fsq_levels(std::span<const int> levels);

/// z [..., levels.size()] f32, 1 to 16 numbers of at least 3 levels: the values, of its shape.
Tensor fsq(Tape& tape, const Tensor& z, std::span<const int> levels);

}  // namespace vfm::ops
