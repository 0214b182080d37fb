// The optimizer's state, which the ranks that have the same weights keep together, each a stretch
// of every weight ('parallel.shard'): moments, average, and of what is split the low halves.
//
// A step is then: gradients are summed to where the state is (train/step/gradients.h), each rank
// updates its own stretches, and these weights go to the others, of what is split the bf16 half
// alone. So a rank sends (N-1)/N of its gradients and as much of its weights, for N ranks. The
// matrices of blocks may be kept so, too, and gathered when they are needed (nn/block_shards.h).
// Where nothing is shared there is nothing to send, and the state is that of all parameters. In a
// pipeline the ranks of a stage share a state; of what all stages have each stage keeps one.
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

/// The ranks that have the state of all `parameters` (or their states) together: a part that is
/// alike on ranks of tp or on stages more than once, a share of a state once in each stage.
dist::Group& holders_of(const dist::Mesh& mesh, const nn::ParameterList& parameters);

class StateShards {
 public:
  /// Elements that travel in one message, where many small weights are together.
  static constexpr std::int64_t kMessage = std::int64_t{4} << 20;

  /// All must outlive it. `blocks` gathers what is sharded; null: nothing is.
  StateShards(const dist::Mesh& mesh, const nn::ParameterList& parameters,
              nn::BlockShards* blocks = nullptr, std::int64_t most = kMessage);

  /// Whether ranks share the state.
  bool any() const { return any_; }
  /// What the optimizer works on, and checkpoints keep: nn::states_of() the parameters.
  const nn::ParameterList& states() const { return states_; }
  /// The weights of all stretches, on all ranks: after they were drawn, read, updated or exchanged
  /// with the average. What is sharded is gathered when a block needs it. A collective.
  void gather() const;
  /// Of the gradients, after they were summed, the sum of squares of all elements, each counted
  /// once; nothing where every rank has them all, and the optimizer itself can tell. The same bits
  /// on all ranks. A collective.
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
