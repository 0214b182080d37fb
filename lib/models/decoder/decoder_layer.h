// A layer of the autoregressive decoder (models/decoder/decoder.h). For this folder. Shape letters:
// S tokens, D width, G key/value heads, K head dim, L text tokens, E text width. If ranks share the
// decoder (nn/network_layout.h), S counts this rank's tokens between sub-layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/decoder/decoder.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/stack.h"

namespace vfm::models {

/// Epsilon of all norms.
inline constexpr float kDecoderEpsilon = 1e-5f;

/// The tensors and settings that all layers read.
struct DecoderContext : nn::Pass {
  Tensor positions;     ///< [S, D] f32, for the residual stream's tokens; or undefined
  nn::SelfTokens self;  ///< angles are those of this cp part
  nn::TextTokens text;
};

/// The keys and values of one layer: `seen`, of the codes so far, and `text`, [L, 2 G K].
struct LayerMemory {
  nn::KeyCache seen;
  Tensor text;
};

class DecoderLayer {
 public:
  /// The names of the parameters begin with `name`, which ends with a dot.
  DecoderLayer(nn::WeightMaker& make, const std::string& name, const DecoderConfig& config);

  /// Leaves nothing pending. With a memory x is one token, whose keys and values are written to it.
  nn::Stream forward(ops::Tape& tape, nn::Stream x, const DecoderContext& context,
                     const LayerMemory* memory = nullptr) const;
  /// Returns the keys and values of the text, [L, 2 G K], for a memory.
  Tensor text_keys(ops::Tape& tape, const Tensor& text, const nn::Pass& pass) const {
    return cross_->attention.keys(tape, text, pass);
  }

 private:
  struct NormedCrossAttention {
    nn::Norm norm;
    nn::CrossAttention attention;
  };
  static std::optional<NormedCrossAttention> only_with_text(nn::WeightMaker& make,
                                                            const std::string& name,
                                                            const DecoderConfig& config);

  nn::Norm norm1_;
  nn::SelfAttention self_;
  std::optional<NormedCrossAttention> cross_;
  nn::Norm norm2_;
  nn::Mlp mlp_;
};

}  // namespace vfm::models
