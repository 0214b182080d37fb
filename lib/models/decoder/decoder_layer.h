// A layer of the autoregressive decoder (models/decoder/decoder.h). For this folder. Shape letters:
// S tokens, D width, H heads, G key/value heads, K head dim, L text tokens, E text width. If ranks
// share the decoder (nn/network_layout.h), S counts this rank's tokens between sub-layers, and H
// and G count this rank's heads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/decoder/decoder.h"
#include "nn/heads.h"
#include "nn/stack.h"
#include "nn/weight_maker.h"
#include "ops/attention/attention.h"
#include "ops/position/positions.h"

namespace vfm::models {

/// Epsilon of all norms.
inline constexpr float kDecoderEpsilon = 1e-5f;

/// The tensors and settings that all layers read.
struct DecoderContext {
  ops::RotaryAngles angles;  ///< [S, K / 2], for the tokens of this cp part
  Tensor positions;          ///< [S, D] f32, for the residual stream's tokens; or undefined
  Tensor text;               ///< [L, E], or undefined
  ops::AttentionPack self, cross;
  nn::TokenExchanges exchanges;
  bool recompute = false;  ///< backward recomputes elementwise results
};

/// The keys and values of one layer: `seen`, [codes, 2 G K], of the codes so far, and `text`, [L, 2
/// G K].
struct LayerMemory {
  Tensor seen, text;
};

class DecoderLayer {
 public:
  /// The names of the parameters begin with `name`, which ends with a dot.
  DecoderLayer(nn::WeightMaker& make, const std::string& name, const DecoderConfig& config,
               const nn::NetworkLayout& layout);

  /// Runs the layer on x, [S, D] f32. With a memory x is one token, whose keys and values are
  /// written to row `at` of the memory.
  Tensor forward(ops::Tape& tape, Tensor x, const DecoderContext& context,
                 const LayerMemory* memory = nullptr, std::int64_t at = 0) const;
  /// The same for nn::Stack. A layer never leaves a branch pending.
  nn::Stream forward(ops::Tape& tape, const nn::Stream& in, const DecoderContext& context) const {
    return {forward(tape, in.x, context)};
  }
  static Tensor merge(ops::Tape& /*tape*/, const nn::Stream& in,
                      const DecoderContext& /*context*/) {
    return in.x;
  }
  /// Returns the keys and values of the text, [L, 2 G K].
  Tensor text_keys(ops::Tape& tape, const Tensor& text) const;

 private:
  Tensor of_normed(ops::Tape& tape, const Tensor& x, const nn::Weight& norm, const nn::Weight& w,
                   const DecoderContext& context) const;
  DType branch_type(const DecoderContext& context) const;
  static Tensor add(ops::Tape& tape, const Tensor& x, const Tensor& branch);
  Tensor attend(ops::Tape& tape, const Tensor& qkv, const DecoderContext& context,
                const LayerMemory* memory, std::int64_t at) const;
  Tensor recall(ops::Tape& tape, const Tensor& qkv, const DecoderContext& context,
                const Tensor& seen, std::int64_t at) const;

  nn::HeadShape shape_;
  DType compute_;
  const nn::Weight &norm1_, &qkv_;
  nn::Heads heads_;
  const nn::Weight& out_;
  const nn::Weight *cross_norm_ = nullptr, *cross_q_ = nullptr, *cross_kv_ = nullptr;
  std::optional<nn::Heads> cross_heads_;  // only if the decoder has text
  const nn::Weight* cross_out_ = nullptr;
  const nn::Weight *norm2_ = nullptr, *up_ = nullptr, *down_ = nullptr;
};

}  // namespace vfm::models
