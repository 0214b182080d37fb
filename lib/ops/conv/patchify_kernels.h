// The kernels behind patchify.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/patchify.h"
#include "ops/kernel.h"

namespace vfm::ops {

/// The samples of a call and the layout of their tokens.
struct PatchLayout {
  std::vector<PatchGrid> grids;
  int channels = 0;       ///< of the latents
  int zero_channels = 0;  ///< zero channels of a token after those
  std::array<int, 3> patch{};

  std::int64_t token_width() const {
    return std::int64_t{channels + zero_channels} * patch[0] * patch[1] * patch[2];
  }
};

// Tokens hold (c, pt, ph, pw). Latents are f32, tokens f32 or bf16. Backward is the inverse.
VFM_KERNEL(void, patchify_forward, const PatchLayout& layout, const Tensor& latents,
           const Tensor& tokens)
VFM_KERNEL(void, patchify_backward, const PatchLayout& layout, const Tensor& dtokens,
           const Tensor& dlatents)
// Tokens hold (ph, pw, pt, c); f32 throughout.
VFM_KERNEL(void, unpatchify_forward, const PatchLayout& layout, const Tensor& tokens,
           const Tensor& latents)
VFM_KERNEL(void, unpatchify_backward, const PatchLayout& layout, const Tensor& dlatents,
           const Tensor& dtokens)

}  // namespace vfm::ops
