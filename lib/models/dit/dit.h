// The diffusion transformer of Cosmos-1.0, under the names, shapes and configuration of diffusers'
// CosmosTransformer3DModel: AdaLN-LoRA, cross-attention to text, per-head QK-RMSNorm, 3D RoPE,
// learned absolute positions added at every block, exact GELU, no biases. The ST-DiT is here too.
// It differs only in the self-attentions of a block (models/dit/stdit.h).
// Source: diffusers transformer_cosmos.py; NVIDIA, "Cosmos World Foundation Model Platform"
// (2025).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "models/dit/framed_network.h"
#include "nn/network_layout.h"

namespace vfm::models {

struct Architecture;
struct ForeignNetwork;
extern const Architecture kDit, kStdit;
extern const ForeignNetwork kCosmosInDiffusers;  ///< what other programs know of kDit

/// The fields of kDit and kStdit besides those of NetworkConfig.
struct DitFields {
  /// The recipe's word: "lora", or "full" where adaln_lora_dim is 0. The network does not read it.
  std::string adaln = "lora";
  /// Width between a modulation's two matrices; 0: one matrix. The network reads this field.
  int adaln_lora_dim = 256;
  std::array<double, 3> rope_scale = {2.0, 1.0, 1.0};
  bool learnable_positions = true;  ///< has learned position tables
};

/// A network of the architecture kDit or kStdit.
class Dit final : public FramedNetwork {
 public:
  /// See make_network() for the arguments. Weights are initialised as in Cosmos: xavier uniform,
  /// last AdaLN matrices zero, positions and time embedding normal 0.02.
  Dit(const NetworkConfig& config, std::uint64_t seed, DType compute = DType::f32,
      Device device = Device::cpu, bool trainable = true, const nn::NetworkLayout& layout = {});

  Tensor forward(ops::Tape& tape, const NetworkBatch& batch) const override;
  std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape,
                                            const NetworkBatch& batch) const override;

 private:
  struct State;
  State& state() const;
};

}  // namespace vfm::models
