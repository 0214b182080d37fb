// The diffusion transformer of Cosmos-1.0, under the names, shapes and configuration of
// diffusers' CosmosTransformer3DModel: AdaLN-LoRA, cross-attention to text, per-head QK-RMSNorm,
// 3D RoPE, learned absolute positions added at every block, exact GELU, no biases. And the ST-DiT,
// which differs from it in the self-attentions of its block (models/dit/stdit.h).
// Source: diffusers transformer_cosmos.py; NVIDIA, "Cosmos World Foundation Model Platform"
// (2025).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/dit/framed_network.h"
#include "models/dit/network_layout.h"

namespace vfm::models {

/// Of the configuration types dit and stdit.
class Dit final : public FramedNetwork {
 public:
  /// As make_network() says. Weights are initialised as Cosmos does: xavier uniform, last AdaLN
  /// matrices zero, positions and time embedding normal 0.02.
  Dit(const NetworkConfig& config, std::uint64_t seed, DType compute = DType::f32,
      Device device = Device::cpu, bool trainable = true, const NetworkLayout& layout = {});

  void set_inference_fp8(Fp8Parts parts) override;
  Tensor forward(ops::Tape& tape, const NetworkBatch& batch) const override;
  std::unique_ptr<StagedForward> stages(ops::Tape& tape, const NetworkBatch& batch) const override;

 private:
  struct State;
  class Stages;
  State& state() const;
};

}  // namespace vfm::models
