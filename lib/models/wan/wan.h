// The diffusion transformer of Wan 2.1 and 2.2 (`model.type: wan`), under the names of diffusers'
// WanTransformer3DModel, whose blocks are called "transformer_blocks" here.
//
//   t = W2 SiLU(W1 wave(c_noise)),   m = W3 SiLU(t)             biases everywhere
//   text = V2 GELU(V1 text)                                     of the text encoder's rows
//   a block:   (shift, scale, gate)_1,2 = table + m
//              x += gate_1 * SelfAttention(modulate_1(LN(x)))
//              x += CrossAttention(LN(x) w + b, text)           no gate
//              x += gate_2 * MLP(modulate_2(LN(x)))             GELU with tanh
//   at the end modulate(LN(x)) with (shift, scale) = table + t, and a matrix
//
// Queries and keys of both attentions go through an RMS norm over all heads of a token. Rotation
// turns neighbours (2 i, 2 i + 1); positions are whole numbers along time, height and width, for
// any frame rate. The time input is 1000 t, for a noise level t in (0, 1]. wave() is the sinusoid
// of ops/position/positions.h. The time embedding is computed in f32, as in the reference; see
// NetworkBatch::round_embedding.
// Sources: Wan Team, "Wan: open and advanced large-scale video generative models" (2025);
// diffusers transformer_wan.py; Wan-Video/Wan2.2, wan/modules/model.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/dit/network.h"

namespace vfm::models {

struct Architecture;
struct ForeignNetwork;
extern const Architecture kWan;
extern const ForeignNetwork kWanInDiffusers;  ///< what other programs know of kWan

/// The fields of kWan besides those of NetworkConfig. The network does not read mlp_ratio.
struct WanFields {
  int ffn_dim = 13824;  ///< hidden width of the MLP
  int freq_dim = 256;   ///< width of wave(c_noise)
};

/// See make_network(). Matrices are initialised xavier uniform, tables and the embeddings of time
/// and text normal 0.02, biases zero.
std::unique_ptr<DiffusionNetwork> make_wan(const NetworkConfig& config, std::uint64_t seed,
                                           DType compute, Device device, bool trainable,
                                           const nn::NetworkLayout& layout);

}  // namespace vfm::models
