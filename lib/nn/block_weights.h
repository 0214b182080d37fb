// Which of a model's weights are whose block's: those that are made from one begin() to the next.
// What is made after the last block, as the last norm and matrix, counts as its: no block before
// uses it.
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

  /// A block is made from here on.
  void begin() { begins_.push_back(weights_.size()); }
  /// When all are made: matrices that are not always here are gathered by `shards`.
  void gather_by(BlockShards* shards) {
    shards_ = shards;
    if (shards == nullptr) return;
    std::vector<std::vector<ShardedMatrix*>> blocks(begins_.size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
      for (std::size_t at = begins_[i]; at < end_of(i); ++at)
        if (weights_[at].sharded() != nullptr) blocks[i].push_back(weights_[at].sharded());
    shards->set_blocks(std::move(blocks));
  }
  /// Before the tape has anything of block `i`, which must be watched: what ends with it is final
  /// when backward has left the block (ops/tape.h).
  void enter(ops::Tape& tape, std::size_t i) const {
    if (shards_ != nullptr) shards_->enter(tape, i);
    for (std::size_t at = begins_[i]; at < end_of(i); ++at)
      weights_[at].first_use(tape);
  }
  /// After the last block.
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
