// MovieGen-Llama, the diffusion transformer with a Llama's layers (`model.type: moviegen`).
//
//   time = W2 SiLU(W1 wave(c_noise)) + V2 SiLU(V1 wave(fps)),   e = SiLU(time)
//   a layer:   x += t[frame] + h[row] + w[column]                learned, one table an axis
//              x += gate_1 * SelfAttention(modulate_1(RMS(x)))   G key/value, H query heads
//              x += CrossAttention(x, text)                      neither norm nor gate
//              x += gate_2 * MLP(modulate_2(RMS(x)))             SwiGLU
//   at the end modulate(RMS(x)), and a matrix
//
// modulate(n) = n (1 + scale) + shift, with (shift, scale, gate) = W e. A layer has two such
// matrices W, together six times the width high, which are initialised to zero. RMS has no weights
// of its own, eps 1e-5. No biases, no rotation. With MovieGenFields::qk_norm queries and keys of
// both attentions go through an RMS norm of each head, whose weights all heads share, as in NeMo's
// DiT layer: attnN.norm_q, norm_k. NeMo's layer of this network has no such norm. wave() is the
// sinusoid of ops/position/positions.h; an image has a frame rate of 0. NeMo's layer has no
// residual around the cross-attention: there the output of the cross-attention replaces the stream.
// Here the output is added. Sources: Polyak et al., "Movie Gen" (2024), section 3; NVIDIA,
// "Training video foundation models with NeMo" (2025).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/dit/network.h"

namespace vfm::models {

struct Architecture;
extern const Architecture kMovieGen;

/// The fields of kMovieGen besides those of NetworkConfig.
struct MovieGenFields {
  int num_key_value_heads = 0;  ///< divides the query heads; 0: as many as query heads
  bool qk_norm = false;         ///< RMS norms of queries and keys
};

/// See make_network(). Matrices are initialised xavier uniform, tables and the embedders' matrices
/// normal 0.02, modulation zero. The network cannot run in FP8: set_inference_fp8() throws
/// Error{usage} for any part.
std::unique_ptr<DiffusionNetwork> make_moviegen(const NetworkConfig& config, std::uint64_t seed,
                                                DType compute, Device device, bool trainable,
                                                const nn::NetworkLayout& layout);

}  // namespace vfm::models
