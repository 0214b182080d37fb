// The block of the diffusion transformers with AdaLN-LoRA. In models/dit/dit.h it has one
// self-attention, over the whole sample; models/dit/stdit.h has two more. For these networks alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "models/dit/network_frame.h"
#include "nn/mlp.h"

namespace vfm::models {

/// Epsilon of the layer norms and of the time embedding's norm.
inline constexpr float kDitNormEpsilon = 1e-6f;

/// The tensors and settings that all blocks read.
struct DitContext : BlockContext {
  nn::SelfTokens frames, pixels;  ///< only for the ST-DiT: tokens of a frame, and of a pixel
};

/// A layer norm with the modulation SiLU(e) -> linear_1 -> linear_2, plus the shared vector. If
/// DitFields::adaln_lora_dim is 0, linear_1 is missing and linear_2 takes the network's width, like
/// diffusers' CosmosAdaLayerNormZero without hidden_features. Shift, scale and, for `parts` 3,
/// gate.
nn::AdaptiveNorm dit_norm(nn::WeightMaker& make, const std::string& name,
                          const NetworkConfig& config, int parts = 3);

class DitBlock {
 public:
  /// The names of the parameters begin with `name`, which ends with a dot.
  DitBlock(nn::WeightMaker& make, const std::string& name, const NetworkConfig& config);

  nn::Stream forward(ops::Tape& tape, nn::Stream x, const DitContext& context) const;

 private:
  struct NormedAttention {
    nn::AdaptiveNorm norm;
    nn::SelfAttention attention;
  };
  static NormedAttention normed_attention(nn::WeightMaker& make, const std::string& norm,
                                          const std::string& name, const NetworkConfig& config);
  static std::optional<NormedAttention> only_stdit(nn::WeightMaker& make, const std::string& name,
                                                   const char* reach, const NetworkConfig& config);

  std::optional<NormedAttention> spatial_;
  NormedAttention full_;
  nn::AdaptiveNorm norm2_;
  nn::CrossAttention cross_;
  std::optional<NormedAttention> temporal_;
  nn::AdaptiveNorm norm3_;
  nn::Mlp mlp_;
};

}  // namespace vfm::models
