// Where a token is: learned absolute positions, rotary angles, and the sinusoid of the time
// input.
// Shape letters: S tokens of the pack, D width, K head dim, R samples.
// Source: NVIDIA, "Cosmos World Foundation Model Platform" (2025), and diffusers'
// transformer_cosmos.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// The token grid of one sample: latent sizes divided by the patch.
struct TokenGrid {
  int frames = 1, height = 1, width = 1;
  float fps = 0;  ///< 0: the temporal position is the bare index
  /// From one position to the next along (t, h, w). Below 1, more tokens share the range of
  /// positions that training saw: for sizes beyond the trained ones. Not while recording.
  std::array<double, 3> step = {1, 1, 1};
  bool operator==(const TokenGrid&) const = default;
};

/// For each token, e = t[frame] + h[row] + w[column]: [S, D] f32; `unit`: divided by
/// (1e-6 + rms(e)), as Cosmos does.
/// Tables are [*, D] f32 and at least as long as the grids reach. With a step other than 1 a
/// position between two rows is taken in proportion from both.
Tensor learned_positions(Tape& tape, const Tensor& table_t, const Tensor& table_h,
                         const Tensor& table_w, const std::vector<TokenGrid>& grids,
                         bool unit = true);

struct RotaryAngles {
  Tensor cosines, sines;  ///< [S, K / 2] f32
};
/// How positions turn.
struct RotaryOptions {
  double theta = 10000;
  /// YaRN, along time: a frequency that turns r = yarn_frames f / (2 pi) times over the
  /// frames that were trained is kept where r is above the fast beta, divided by yarn_scale below
  /// the slow one, and in between in proportion. No temperature. 1: off.
  double yarn_scale = 1;
  int yarn_frames = 1;
  int yarn_rows = 0;  ///< the same in height and width, of so many trained rows; 0: not there
  std::array<double, 2> yarn_betas = {4, 1};  ///< fast, slow
  Device device = Device::cpu;                ///< where the angles are wanted
};

/// 3D rotary positions. The K / 2 angles of a token are those of time, then height, then width;
/// height and width have K / 6 each, rounded down, time the rest. Each axis has frequencies
/// (theta scale^(d / (d - 2)))^(-2 i / d), d its part of K. The temporal position is frame * 24 /
/// fps. `scale` is (t, h, w). Source of YaRN: Peng et al., "YaRN: efficient context window
/// extension" (2023).
RotaryAngles rotary_angles(const std::vector<TokenGrid>& grids, int head_dim,
                           const std::array<double, 3>& scale, const RotaryOptions& options = {});

/// [R, D]: cos(t f_i), then sin(t f_i), f_i = 10000^(-i / (D / 2)); computed in double.
Tensor sinusoid(std::span<const float> times, int width);
/// The same of times [R] f32, on their device.
Tensor sinusoid(const Tensor& times, int width);

}  // namespace vfm::ops
