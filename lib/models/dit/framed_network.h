// The base class of the diffusion networks. It has the members that all of them implement in the
// same way, with their NetworkFrame (models/dit/network_frame.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "models/dit/network.h"

namespace vfm::models {

struct NetworkFrame;

class FramedNetwork : public DiffusionNetwork {
 public:
  ~FramedNetwork() override;

  const NetworkConfig& config() const override;
  Device device() const override;
  const nn::ParameterList& parameters() const override;
  const nn::ParameterList& adapters() const override;
  void attach(const std::vector<nn::AdapterShape>& shapes, bool trainable) override;
  void quantize() override;
  void set_recompute(nn::Recompute recompute, bool offload = false) override;
  void set_inference_fp8(Fp8Parts parts) override;
  std::vector<Shape> stream_shapes(const NetworkBatch& batch, std::size_t block) const final;
  Tensor own_part(const Tensor& values, const NetworkBatch& batch) const override;

 protected:
  /// `frame` is the network's own state, which derives from NetworkFrame.
  explicit FramedNetwork(std::unique_ptr<NetworkFrame> frame);
  FramedNetwork(FramedNetwork&&) noexcept;

  std::unique_ptr<NetworkFrame> frame_;
};

}  // namespace vfm::models
