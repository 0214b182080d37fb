// Group normalisation of a video with one group for each frame, and SiLU after it.
//
// The statistics of a frame are over its rows, columns and channels together, never over time: so a
// video can be computed in chunks. They are a step of their own: parts of a frame, each with
// its moments, make the moments of the frame (combine_moments), exactly.
// Source: Wu and He, "Group Normalization" (2018), with one group.
// Shape letters: T frames, H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// x [T, H, W, C], f32 or bf16. Mean and variance (of the population) of each frame: [T, 2], f32,
/// on x's device. Not recorded.
Tensor frame_moments(const Tensor& x);

/// The moments of frames of which parts[i] are those of weights[i] elements. On the CPU.
Tensor combine_moments(const std::vector<Tensor>& parts, const std::vector<double>& weights);

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, and with `silu` y / (1 + exp(-y)), in
/// x's dtype; weight and bias are [C], f32. The gradient is that for moments of x itself, which
/// are taken where `moments` is undefined.
Tensor frame_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon, bool silu, const Tensor& moments = {});

}  // namespace vfm::ops
