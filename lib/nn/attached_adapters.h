// Adapters on the matrices of a model: what an adapter computes is in ops/matmul/low_rank.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "nn/network_layout.h"
#include "nn/weight.h"

namespace vfm::nn {

/// An adapter of one of a network's matrices, named as in its state dict without ".weight".
struct AdapterShape {
  std::string module;  ///< "transformer_blocks.0.attn1.to_q"
  int rank = 0;
  float scale = 1;  ///< of B A
};

/// The adapters of a model's weights. Neither it nor the weights may move afterwards.
class AttachedAdapters {
 public:
  /// As DiffusionNetwork::attach() says; `options` are those of the weights.
  void attach(std::deque<Weight>& weights, const WeightOptions& options,
              const NetworkLayout& layout, const std::vector<AdapterShape>& shapes, bool trainable);
  void watch(ops::Tape& tape) const;
  const ParameterList& parameters() const { return parameters_; }

 private:
  std::deque<Weight> weights_;
  ParameterList parameters_;
};

}  // namespace vfm::nn
