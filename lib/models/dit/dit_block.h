// The block of the diffusion transformers with AdaLN-LoRA. In models/dit/dit.h it has one
// self-attention, over the whole sample; models/dit/stdit.h has two more. For these networks alone.
// Shape letters: S tokens of the pack, D width, H heads, K head dim, L text tokens of the pack, E
// text width, R samples of the pack. If ranks share the network (nn/network_layout.h), S counts
// this rank's tokens between sub-layers, and H this rank's heads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "models/dit/network.h"
#include "models/dit/stdit.h"
#include "nn/heads.h"
#include "nn/stack.h"
#include "nn/weight_maker.h"
#include "ops/attention/attention.h"
#include "ops/norm/modulate.h"
#include "ops/position/positions.h"

namespace vfm::models {

/// Epsilon of the layer norms and of the time embedding's norm.
inline constexpr float kDitNormEpsilon = 1e-6f;

/// The tensors and settings that all blocks read.
struct DitContext {
  Tensor positions;          ///< [S, D], or undefined
  Tensor embedding;          ///< [R, D]: SiLU of the normed sinusoid
  Tensor shared;             ///< [R, 3 D]: the modulation that all sub-layers share
  ops::RowMap rows;          ///< sample of each token
  Tensor text;               ///< [L, E]
  ops::RotaryAngles angles;  ///< [S, K / 2]
  ops::AttentionPack self, cross;
  SpaceTimePacks space_time;  ///< only for the ST-DiT
  nn::TokenExchanges exchanges;
  /// The ST-DiT's temporal layers use these in place of exchanges.gather and .sum. With one rank of
  /// cp only `to_pixels` is set. With several ranks both are set in a hybrid, and neither
  /// otherwise.
  ops::Exchange to_pixels, from_pixels;
  bool recompute = false;      ///< backward recomputes elementwise results
  bool keep_moved = false;     ///< temporal layers keep what they got from other ranks
  bool fp8_attention = false;  ///< self-attention in FP8
};

/// Computes shift, scale and, in blocks, gate: SiLU(embedding) -> linear_1 -> linear_2, plus the
/// shared vector. If DitFields::adaln_lora_dim is 0, linear_1 is missing and linear_2 takes the
/// network's width, like diffusers' CosmosAdaLayerNormZero without hidden_features.
class AdaLn {
 public:
  AdaLn(nn::WeightMaker& make, const std::string& prefix, const NetworkConfig& config, int parts);
  Tensor forward(ops::Tape& tape, const DitContext& context) const;

 private:
  const nn::Weight *down_ = nullptr, *up_ = nullptr;  // `down_` may be null
};

/// One projection to queries, keys and values, their per-head norms, and the output projection.
struct SelfAttention {
  SelfAttention(nn::WeightMaker& make, const std::string& norm_name, const std::string& name,
                const NetworkConfig& config, const nn::NetworkLayout& layout);
  AdaLn norm;
  const nn::Weight& qkv;
  nn::Heads heads;
  const nn::Weight& out;
};

class DitBlock {
 public:
  /// The names of the parameters begin with `name`, which ends with a dot.
  DitBlock(nn::WeightMaker& make, const std::string& name, const NetworkConfig& config,
           const nn::NetworkLayout& layout = {});

  nn::Stream forward(ops::Tape& tape, const nn::Stream& in, const DitContext& context) const;
  /// Returns the residual stream with its branch added.
  Tensor merge(ops::Tape& tape, const nn::Stream& in, const DitContext& context) const;
  /// Calls Weight::keep_fp8() for the block's matrices, with which a model computes nearly all its
  /// products. nn/weight.h explains `ranks`.
  void keep_fp8(bool keep, dist::Group* ranks) const;

 private:
  struct Entered {
    Tensor x, projected, gates;
  };
  ops::ModulateInput pending(const nn::Stream& in, const DitContext& context,
                             const Tensor& modulation) const;
  Entered enter(ops::Tape& tape, const nn::Stream& in, const DitContext& context, const AdaLn& norm,
                const Tensor& extra, const nn::Weight& matrix, const ops::Exchange& gather,
                bool keep = false) const;
  Tensor attend(ops::Tape& tape, const Tensor& projected, const DitContext& context,
                const SelfAttention& layer, Reach reach, bool moved) const;
  Tensor sum_of_ranks(ops::Tape& tape, const nn::Weight& matrix, Tensor x,
                      const DitContext& context, const ops::Exchange& way) const;
  Tensor activate(ops::Tape& tape, const Tensor& hidden, const DitContext& context) const;
  nn::Stream self_attention(ops::Tape& tape, const nn::Stream& in, const DitContext& context,
                            const SelfAttention& layer, Reach reach, const Tensor& extra) const;
  Tensor cross_attention(ops::Tape& tape, const Tensor& projected, const DitContext& context) const;

  DType compute_;
  std::optional<SelfAttention> spatial_;
  SelfAttention full_;
  AdaLn norm2_;
  const nn::Weight &cross_q_, &cross_kv_;
  nn::Heads cross_heads_;
  const nn::Weight& cross_out_;
  std::optional<SelfAttention> temporal_;
  AdaLn norm3_;
  const nn::Weight &up_, &down_;
};

}  // namespace vfm::models
