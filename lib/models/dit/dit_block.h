// The block of the diffusion transformers with AdaLN-LoRA: models/dit/dit.h, whose self-attention
// sees the whole sample, and models/dit/stdit.h, which has two more. For these alone. Shape
// letters: S tokens of the pack, D width, H heads, K head dim, L text tokens of the pack, E text
// width, R samples of the pack. Where ranks share the network (nn/network_layout.h), S are
// this rank's tokens between sub-layers, and H its heads.
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

/// Of layer norms and the time embedding's norm.
inline constexpr float kDitNormEpsilon = 1e-6f;

/// What all blocks read.
struct DitContext {
  Tensor positions;          ///< [S, D], or undefined
  Tensor embedding;          ///< [R, D]: SiLU of the normed sinusoid
  Tensor shared;             ///< [R, 3 D]: the modulation that all sub-layers share
  ops::RowMap rows;          ///< sample of each token
  Tensor text;               ///< [L, E]
  ops::RotaryAngles angles;  ///< [S, K / 2]
  ops::AttentionPack self, cross;
  SpaceTimePacks space_time;  ///< of the ST-DiT
  nn::TokenExchanges exchanges;
  /// Of the ST-DiT's temporal layers, in place of exchanges.gather and .sum. Of one rank of cp the
  /// first alone; with more both of a hybrid, else none.
  ops::Exchange to_pixels, from_pixels;
  bool recompute = false;      ///< elementwise recompute
  bool keep_moved = false;     ///< and yet what came to a temporal layer from other ranks is kept
  bool fp8_attention = false;  ///< self-attention in FP8
};

/// SiLU(embedding) -> linear_1 -> linear_2, plus the shared vector: shift, scale and, in blocks,
/// gate. Without DitFields::adaln_lora_dim there is no linear_1, and linear_2 is as wide as the
/// network: what diffusers' CosmosAdaLayerNormZero is without hidden_features.
class AdaLn {
 public:
  AdaLn(nn::WeightMaker& make, const std::string& prefix, const NetworkConfig& config, int parts);
  Tensor forward(ops::Tape& tape, const DitContext& context) const;

 private:
  const nn::Weight *down_ = nullptr, *up_ = nullptr;  // the first may be missing
};

/// Queries, keys and values of one projection; per-head norms, and the output projection.
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
  /// Parameters under `name`, which ends with a dot.
  DitBlock(nn::WeightMaker& make, const std::string& name, const NetworkConfig& config,
           const nn::NetworkLayout& layout = {});

  nn::Stream forward(ops::Tape& tape, const nn::Stream& in, const DitContext& context) const;
  /// The stream with its branch added.
  Tensor merge(ops::Tape& tape, const nn::Stream& in, const DitContext& context) const;
  /// Keeps copies in FP8 of the block's matrices, which are nearly all of a model's products. For
  /// `ranks`: nn/weight.h.
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
