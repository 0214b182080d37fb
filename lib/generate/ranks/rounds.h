// Deals prompts to ranks. One rank reads them, several make the clips, and results return in the
// order of the prompts.
//
// Work is done in rounds. Each leading rank gets some requests, by cost, and makes them; then all
// meet again. So rank 0 holds the prompts of only one round, and reads a slow pipe slowly.
// Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "dist/group.h"
#include "generate/ranks/clip_messages.h"

namespace vfm::generate {

/// Cost of a clip relative to other clips of one model: the number of its tokens through the
/// network.
std::uint64_t clip_cost(const NamedRequest& request, const Extents& latent, bool autoregressive);

/// One round. A collective of the leading ranks. Rank 0 reads the prompts.
class Round {
 public:
  /// Rank 0 passes the requests, their costs, and whether more rounds follow; other ranks pass
  /// nothing. Also sends the measured error of FP8 or 8-bit weights to all.
  Round(dist::Group& leaders, std::vector<Asked> asked, const std::vector<std::uint64_t>& costs,
        bool more, std::optional<double>& output_error);

  bool more() const { return more_; }
  /// The requests that this rank must make.
  std::vector<Asked>& mine() { return mine_; }
  /// Takes the results of mine(), in the same order. On rank 0 returns all results of the round, in
  /// the order of the prompts; on other ranks nothing.
  std::vector<Result> collect(std::vector<Result> made);

 private:
  dist::Group& leaders_;
  std::vector<Asked> asked_, mine_;
  std::vector<int> makers_;  // by item of the round; -1: the item cannot be made
  bool more_ = false;
};

}  // namespace vfm::generate
