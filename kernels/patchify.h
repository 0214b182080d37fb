// Latents to tokens and back, and the gradients of both: the CUDA version of
// lib/ops/conv/patchify.h.
//
// The orders of a token's elements differ, and both are Cosmos': one that goes in holds its patch
// as (c, pt, ph, pw), channel slowest; one that comes out holds (ph, pw, pt, c), channel fastest.
// Nothing is computed but the rounding to bf16 (nearest, ties to even; NaN stays NaN).
//
// Shape letters: S tokens of the pack, R samples, C channels, Z zero channels, P = pt ph pw; a
// sample is (C, T, H, W) of f32, the samples one after the other; its tokens run over (T / pt,
// H / ph, W / pw).
//
// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a negative
// size, tokens without samples, a patch without elements, and tokens wider than 2^31 - 1. What the
// samples say is not checked: they are on the device. No tokens are a success.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Where a sample of the pack is. The host adds up the offsets over the samples before it:
/// first_token the sum of (T / pt) (H / ph) (W / pw), first_latent the sum of C T H W, with the C
/// of the call. T, H and W are at least 1 and multiples of the patch.
struct PatchSample {
  std::int64_t first_token = 0, first_latent = 0;  ///< in tokens; in elements of the latents
  std::int32_t frames = 0, height = 0, width = 0;  ///< T, H, W of the latents
};

/// What latents and tokens of a call look like.
struct PatchLayout {
  const PatchSample* samples = nullptr;  ///< [R] on the device, in the order of the pack
  std::int32_t sample_count = 0;
  std::int64_t tokens = 0;  ///< S, of all samples
  int channels = 0;         ///< C
  int zero_channels = 0;    ///< Z
  int patch[3] = {1, 1, 1};
  Type type = Type::f32;  ///< of the tokens
};

/// tokens [S, (C + Z) P] out, the last Z P elements of each zero (a padding mask without padding).
int patchify_forward(const PatchLayout& layout, const float* latents, void* tokens,
                     CUstream_st* stream);

/// dlatents out, every element; what dtokens [S, (C + Z) P] says of zero channels is not read.
int patchify_backward(const PatchLayout& layout, const void* dtokens, float* dlatents,
                      CUstream_st* stream);

/// latents out, every element, from tokens [S, P (C + Z)]; zero channels are not read.
int unpatchify_forward(const PatchLayout& layout, const void* tokens, float* latents,
                       CUstream_st* stream);

/// dtokens [S, P (C + Z)] out.
int unpatchify_backward(const PatchLayout& layout, const float* dlatents, void* dtokens,
                        CUstream_st* stream);

}  // namespace vfm::kernels
