// Several networks of one configuration as one network. One of them is in memory at a time, and the
// others are loaded when they are chosen (DiffusionNetwork::choose).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "models/dit/network.h"

namespace vfm::models {

/// Thread-safety: as DiffusionNetwork. Any thread may call choose() with the present number. With
/// another number, no other thread may use this object during the call.
class SwitchedNetwork final : public DiffusionNetwork {
 public:
  /// Makes and loads the network of a number, on the device of the first and with its part of the
  /// weights. It has adapters, but no FP8 and no 8-bit weights yet. A collective of the ranks that
  /// share the network.
  using Load = std::function<std::unique_ptr<DiffusionNetwork>(int number)>;
  /// `first` is number 0.
  SwitchedNetwork(std::unique_ptr<DiffusionNetwork> first, Load load);

  /// Frees the present network, loads the other one, and puts FP8 or 8-bit weights on it, if the
  /// former had them. After an error the next choose() loads a network again; before that call
  /// nothing else.
  void choose(int number) override;
  const NetworkConfig& config() const override { return config_; }
  Device device() const override { return device_; }
  void set_inference_fp8(Fp8Parts parts) override;
  void quantize() override;

  // The rest is done by the present network.
  const nn::ParameterList& parameters() const override { return network_->parameters(); }
  void attach(const std::vector<nn::AdapterShape>& shapes, bool trainable) override {
    network_->attach(shapes, trainable);
  }
  const nn::ParameterList& adapters() const override { return network_->adapters(); }
  void set_recompute(nn::Recompute recompute, bool offload) override {
    network_->set_recompute(recompute, offload);
  }
  Tensor forward(ops::Tape& tape, const NetworkBatch& batch) const override {
    return network_->forward(tape, batch);
  }
  std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape,
                                            const NetworkBatch& batch) const override {
    return network_->stages(tape, batch);
  }
  std::vector<Shape> stream_shapes(const NetworkBatch& batch, std::size_t block) const override {
    return network_->stream_shapes(batch, block);
  }
  Tensor own_part(const Tensor& values, const NetworkBatch& batch) const override {
    return network_->own_part(values, batch);
  }

 private:
  std::unique_ptr<DiffusionNetwork> network_;
  const Load load_;
  const NetworkConfig config_;
  const Device device_;
  std::mutex mutex_;  // guards network_ and number_ in choose()
  int number_ = 0;
  Fp8Parts fp8_;
  bool quantized_ = false;
};

}  // namespace vfm::models
