// Latents to tokens and back.
//
// The two directions use different orders, both as in Cosmos: a token that goes into the network
// holds its patch as (c, pt, ph, pw), channel slowest; a token that comes out holds (ph, pw, pt,
// c), channel fastest.
// Shape letters: S tokens of the pack, C channels, P = pt ph pw. A sample is (C, T, H, W); its
// tokens run over (T / pt, H / ph, W / pw).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// Latent sizes of one sample of a pack; each is a multiple of the patch size.
struct PatchGrid {
  int frames = 0, height = 0, width = 0;
};

/// Returns [S, (C + zero_channels) P] of dtype `out`. `latents` are f32, the samples' (C, T, H, W)
/// one after the other. The last zero_channels channels are zero: a padding mask without padding.
Tensor patchify(Tape& tape, const Tensor& latents, const std::vector<PatchGrid>& grids,
                int channels, int zero_channels, std::array<int, 3> patch, DType out);

/// Returns the flat latents, f32, for tokens [S, P C] f32.
Tensor unpatchify(Tape& tape, const Tensor& tokens, const std::vector<PatchGrid>& grids,
                  int channels, std::array<int, 3> patch);

}  // namespace vfm::ops
