// Adapters on the matrices of a network or a decoder (models/dit/lora.h says on which).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "models/dit/lora.h"
#include "models/dit/network_layout.h"
#include "nn/weight.h"

namespace vfm::models {

/// The adapters of a model's weights. Neither it nor the weights may move afterwards.
class AttachedAdapters {
 public:
  /// As DiffusionNetwork::attach() says; `options` are those of the weights.
  void attach(std::deque<nn::Weight>& weights, const nn::WeightOptions& options,
              const NetworkLayout& layout, const std::vector<AdapterShape>& shapes, bool trainable);
  void watch(ops::Tape& tape) const;
  const nn::ParameterList& parameters() const { return parameters_; }

 private:
  std::deque<nn::Weight> weights_;
  nn::ParameterList parameters_;
};

}  // namespace vfm::models
