// Latents to tokens and back, and the gradients of both: the CUDA version of
// lib/ops/conv/patchify.h.
//
// The two directions use different orders, both as in Cosmos: a token that goes into the network
// holds its patch as (c, pt, ph, pw), channel slowest; a token that comes out holds (ph, pw, pt,
// c), channel fastest. The only arithmetic is rounding to bf16 (to nearest, ties to even; NaN stays
// NaN).
//
// Shape letters: S tokens of the pack, R samples, C channels, Z zero channels, P = pt ph pw. A
// sample is (C, T, H, W) of f32; samples lie one after the other. Its tokens run over (T / pt,
// H / ph, W / pw).
//
// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a
// negative size, tokens without samples, a patch without elements, or tokens wider than 2^31 - 1.
// The samples themselves are not checked, as they are on the device. A call without tokens
// succeeds.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The place of a sample in the pack. The offsets are sums over the earlier samples: first_token of
/// (T / pt) (H / ph) (W / pw), first_latent of C T H W, with the C of the call. T, H and W are at
/// least 1 and multiples of the patch.
struct PatchSample {
  std::int64_t first_token = 0, first_latent = 0;  ///< in tokens; in elements of the latents
  std::int32_t frames = 0, height = 0, width = 0;  ///< T, H, W of the latents
};

/// The layout of latents and tokens in a call.
struct PatchLayout {
  const PatchSample* samples = nullptr;  ///< [R] on the device, in the order of the pack
  std::int32_t sample_count = 0;
  std::int64_t tokens = 0;  ///< S, of all samples
  int channels = 0;         ///< C
  int zero_channels = 0;    ///< Z
  int patch[3] = {1, 1, 1};
  Type type = Type::f32;  ///< of the tokens
};

/// Writes tokens [S, (C + Z) P]. The last Z P elements of each are zero: a padding mask without
/// padding.
int patchify_forward(const PatchLayout& layout, const float* latents, void* tokens,
                     CUstream_st* stream);

/// Writes every element of dlatents. The zero channels in dtokens [S, (C + Z) P] are not read.
int patchify_backward(const PatchLayout& layout, const void* dtokens, float* dlatents,
                      CUstream_st* stream);

/// Writes every element of latents from tokens [S, P (C + Z)]. Zero channels are not read.
int unpatchify_forward(const PatchLayout& layout, const void* tokens, float* latents,
                       CUstream_st* stream);

/// Writes dtokens [S, P (C + Z)].
int unpatchify_backward(const PatchLayout& layout, const float* dlatents, void* dtokens,
                        CUstream_st* stream);

}  // namespace vfm::kernels
