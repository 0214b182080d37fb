// Positions of tokens: learned absolute positions, rotary angles, and the sinusoid of the time
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
  float fps = 0;  ///< frames per second; 0: the temporal position is the frame index
  /// The step from one position to the next along (t, h, w). Steps below 1 fit sizes beyond the
  /// trained ones into the range of positions seen in training. Must be 1 while recording.
  std::array<double, 3> step = {1, 1, 1};
  bool operator==(const TokenGrid&) const = default;
};

/// Returns e = t[frame] + h[row] + w[column] for each token, [S, D] f32. With `unit`, e is divided
/// by (1e-6 + rms(e)), as in Cosmos. Tables are [*, D] f32 and at least as long as the grids reach.
/// With a step other than 1, positions between two rows are interpolated linearly.
Tensor learned_positions(Tape& tape, const Tensor& table_t, const Tensor& table_h,
                         const Tensor& table_w, const std::vector<TokenGrid>& grids,
                         bool unit = true);

struct RotaryAngles {
  Tensor cosines, sines;  ///< [S, K / 2] f32
};
/// Options of rotary positions.
struct RotaryOptions {
  double theta = 10000;
  /// YaRN along time; 1 is off. A frequency f turns r = yarn_frames f / (2 pi) times over the
  /// trained frames. It is kept if r is above the fast beta, divided by yarn_scale if r is below
  /// the slow beta, and interpolated in between. Attention gets no temperature.
  double yarn_scale = 1;
  int yarn_frames = 1;
  int yarn_rows = 0;  ///< trained rows for YaRN in height and width; 0: off there
  std::array<double, 2> yarn_betas = {4, 1};  ///< fast, slow
  Device device = Device::cpu;                ///< device of the angles
};

/// 3D rotary positions. A token's K / 2 angles are those of time, then height, then width. Height
/// and width have K / 6 angles each, rounded down; time has the rest. Each axis has frequencies
/// (theta scale^(d / (d - 2)))^(-2 i / d), with d the axis's part of K. `scale` is (t, h, w). The
/// temporal position is frame * 24 / fps. Source of YaRN: Peng et al., "YaRN: efficient context
/// window extension" (2023).
RotaryAngles rotary_angles(const std::vector<TokenGrid>& grids, int head_dim,
                           const std::array<double, 3>& scale, const RotaryOptions& options = {});

/// Returns [R, D]: cos(t f_i), then sin(t f_i), with f_i = 10000^(-i / (D / 2)); computed in
/// double.
Tensor sinusoid(std::span<const float> times, int width);
/// The same for times [R] f32, on their device.
Tensor sinusoid(const Tensor& times, int width);

}  // namespace vfm::ops
