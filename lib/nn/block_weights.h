// The weights of each block of a model. A block has the weights that are made from its begin() to
// the next. Weights made after the last block, such as the last norm and matrix, count as the last
// block's, because no block before uses them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "nn/weight.h"

namespace vfm::nn {

class BlockWeights {
 public:
  explicit BlockWeights(const std::deque<Weight>& weights) : weights_(weights) {}

  /// Marks the beginning of a block: the weights made next are its weights.
  void begin() { begins_.push_back(weights_.size()); }
  /// Lets `shards` gather the matrices that are not always in memory. Call it after all weights are
  /// made. Null: does nothing.
  void gather_by(BlockShards* shards) {
    shards_ = shards;
    if (shards == nullptr) return;
    std::vector<std::vector<ShardedMatrix*>> blocks(begins_.size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
      for (std::size_t at = begins_[i]; at < end_of(i); ++at)
        if (weights_[at].sharded() != nullptr) blocks[i].push_back(weights_[at].sharded());
    shards->set_blocks(std::move(blocks));
  }
  /// Call it before the tape records anything of block `i`, and after the block's weights are
  /// watched. Their gradients are final once backward has left the block (ops/tape.h).
  void enter(ops::Tape& tape, std::size_t i) const {
    if (shards_ != nullptr) shards_->enter(tape, i);
    for (std::size_t at = begins_[i]; at < end_of(i); ++at)
      weights_[at].first_use(tape);
  }
  /// Call it after the last block.
  void leave(ops::Tape& tape) const {
    if (shards_ != nullptr) shards_->enter(tape, begins_.size());
  }

 private:
  std::size_t end_of(std::size_t i) const {
    return i + 1 < begins_.size() ? begins_[i + 1] : weights_.size();
  }

  const std::deque<Weight>& weights_;
  std::vector<std::size_t> begins_;
  BlockShards* shards_ = nullptr;
};

}  // namespace vfm::nn
