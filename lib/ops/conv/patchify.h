// Latents to tokens and back.
//
// The two orders differ, and both are Cosmos': a token that goes in holds its patch as (c, pt,
// ph, pw), channel slowest; one that comes out holds (ph, pw, pt, c), channel fastest.
// Shape letters: S tokens of the pack, C channels, P = pt ph pw; a sample is (C, T, H, W), its
// tokens run over (T / pt, H / ph, W / pw).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// Latent sizes of one sample of a pack; multiples of the patch.
struct PatchGrid {
  int frames = 0, height = 0, width = 0;
};

/// latents: f32, the samples' (C, T, H, W) one after the other. Returns [S, (C + zero_channels) P]
/// of dtype `out`; the last zero_channels (a padding mask without padding) are zero.
Tensor patchify(Tape& tape, const Tensor& latents, const std::vector<PatchGrid>& grids,
                int channels, int zero_channels, std::array<int, 3> patch, DType out);

/// tokens: [S, P C] f32. Returns the flat latents, f32.
Tensor unpatchify(Tape& tape, const Tensor& tokens, const std::vector<PatchGrid>& grids,
                  int channels, std::array<int, 3> patch);

}  // namespace vfm::ops
