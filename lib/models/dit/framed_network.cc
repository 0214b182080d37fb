// SPDX-License-Identifier: Apache-2.0
#include "models/dit/framed_network.h"

#include <utility>

#include "models/dit/architecture.h"
#include "models/dit/fp8.h"
#include "models/dit/network_frame.h"

namespace vfm::models {

FramedNetwork::FramedNetwork(std::unique_ptr<NetworkFrame> frame) : frame_(std::move(frame)) {}
FramedNetwork::~FramedNetwork() = default;
FramedNetwork::FramedNetwork(FramedNetwork&&) noexcept = default;

const NetworkConfig& FramedNetwork::config() const {
  return frame_->config;
}
Device FramedNetwork::device() const {
  return frame_->device;
}
const nn::ParameterList& FramedNetwork::parameters() const {
  return frame_->parameters;
}
const nn::ParameterList& FramedNetwork::adapters() const {
  return frame_->adapters.parameters();
}
void FramedNetwork::attach(const std::vector<nn::AdapterShape>& shapes, bool trainable) {
  frame_->adapters.attach(frame_->weights, frame_->make.options, frame_->layout, shapes, trainable);
}
void FramedNetwork::quantize() {
  frame_->quantize();
}
void FramedNetwork::set_recompute(nn::Recompute recompute, bool offload) {
  frame_->recompute = recompute;
  frame_->offload = offload;
}
void FramedNetwork::set_inference_fp8(Fp8Parts parts) {
  check_fp8(config(), frame_->compute, parts);
  frame_->keep_fp8(parts.linear);
  frame_->fp8 = parts;
}
std::vector<Shape> FramedNetwork::stream_shapes(const NetworkBatch& batch,
                                                std::size_t block) const {
  int tensors = 1;
  for (int i = 0; i < static_cast<int>(block); ++i)
    tensors += skips_of(config(), i);
  return std::vector<Shape>(static_cast<std::size_t>(tensors), frame_->stream_shape(batch));
}
Tensor FramedNetwork::own_part(const Tensor& values, const NetworkBatch& batch) const {
  return frame_->own_part(values, batch);
}

}  // namespace vfm::models
