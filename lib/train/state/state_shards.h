// The optimizer's state, shared by the ranks that have the same weights ('parallel.shard'). Each
// rank keeps a stretch of every weight's moments, average, and low halves if the weight is split.
//
// In a step gradients are summed to the ranks that keep the state (train/step/gradients.h). Each
// rank updates its stretches and sends these weights to the others, of split weights only the bf16
// half. So with N ranks a rank sends (N-1)/N of its gradients and as much of its weights. The
// matrices of blocks may be sharded, too, and gathered when they are needed (nn/block_shards.h). If
// nothing is shared, nothing is sent, and the state is that of all parameters. In a pipeline the
// ranks of a stage share a state; each stage keeps the state of weights that all stages have.
//
// Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
// models" (2020). Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/mesh.h"
#include "nn/block_shards.h"
#include "nn/parameter.h"
#include "train/step/messages.h"

namespace vfm::train {

/// The ranks that together have the state of all `parameters`. These may be parameters or their
/// states. Ranks of tp, or stages, may have the same part; a stage has each share of a state once.
dist::Group& holders_of(const dist::Mesh& mesh, const nn::ParameterList& parameters);

class StateShards {
 public:
  /// Elements in one message, when many small weights are sent together.
  static constexpr std::int64_t kMessage = std::int64_t{4} << 20;

  /// All arguments must outlive this object. `blocks` gathers sharded matrices; null if there are
  /// none.
  StateShards(const dist::Mesh& mesh, const nn::ParameterList& parameters,
              nn::BlockShards* blocks = nullptr, std::int64_t most = kMessage);

  /// True if ranks share the state.
  bool any() const { return any_; }
  /// nn::states_of() the parameters, which the optimizer updates and checkpoints keep.
  const nn::ParameterList& states() const { return states_; }
  /// Sends the weights of all stretches to all ranks; call it after they were initialized, read,
  /// updated or exchanged with the average. Sharded matrices are gathered when a block needs them.
  /// A collective.
  void gather() const;
  /// The sum of squares of all elements of the summed gradients, each counted once. Nothing if
  /// every rank has all of them, as then the optimizer can compute it. The same bits on all ranks.
  /// A collective.
  std::optional<double> squares() const;

 private:
  const dist::Mesh& mesh_;
  const nn::ParameterList& parameters_;
  const nn::ParameterList states_;
  nn::BlockShards* const blocks_;
  bool any_ = false;
  std::vector<GradientMessage> messages_;
};

}  // namespace vfm::train
