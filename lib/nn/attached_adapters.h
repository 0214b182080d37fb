// Adapters on the matrices of a model. ops/matmul/low_rank.h says what an adapter computes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "nn/network_layout.h"
#include "nn/weight.h"

namespace vfm::nn {

/// An adapter on one matrix of a network. `module` is the matrix's name in the state dict, without
/// ".weight".
struct AdapterShape {
  std::string module;  ///< "transformer_blocks.0.attn1.to_q"
  int rank = 0;
  float scale = 1;  ///< factor of B A
};

/// The adapters on a model's weights. After attach() neither this object nor the weights may move.
class AttachedAdapters {
 public:
  /// See DiffusionNetwork::attach(). `options` are those that the weights were made with.
  void attach(std::deque<Weight>& weights, const WeightOptions& options,
              const NetworkLayout& layout, const std::vector<AdapterShape>& shapes, bool trainable);
  void watch(ops::Tape& tape) const;
  const ParameterList& parameters() const { return parameters_; }

 private:
  std::deque<Weight> weights_;
  ParameterList parameters_;
};

}  // namespace vfm::nn
