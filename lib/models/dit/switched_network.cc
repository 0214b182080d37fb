// SPDX-License-Identifier: Apache-2.0
#include "models/dit/switched_network.h"

#include <utility>

#include "tensor/allocator.h"

namespace vfm::models {

SwitchedNetwork::SwitchedNetwork(std::unique_ptr<DiffusionNetwork> first, Load load)
    : network_(std::move(first)),
      load_(std::move(load)),
      config_(network_->config()),
      device_(network_->device()) {}

void SwitchedNetwork::choose(int number) {
  const std::lock_guard lock(mutex_);
  if (network_ && number == number_) return;
  network_.reset();
  // What it had is not what loading needs. On a GPU the next network takes it over.
  if (device_ == Device::cpu) release_cached_memory();
  std::unique_ptr<DiffusionNetwork> next = load_(number);
  if (fp8_.any()) next->set_inference_fp8(fp8_);
  if (quantized_) next->quantize();
  if (device_ == Device::cpu) release_cached_memory();
  network_ = std::move(next);
  number_ = number;
}

void SwitchedNetwork::set_inference_fp8(Fp8Parts parts) {
  network_->set_inference_fp8(parts);
  fp8_ = parts;
}

void SwitchedNetwork::quantize() {
  network_->quantize();
  quantized_ = true;
}

}  // namespace vfm::models
