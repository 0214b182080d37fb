// Prompts over ranks: one rank reads them, several make the clips, and what becomes of them comes
// back in the order of the prompts.
//
// In rounds: the ranks that lead get some requests each, by their cost, make them, and then meet
// again. So rank 0 holds no more prompts than a round has, and a pipe that is written slowly is
// read as slowly.
// Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "dist/group.h"
#include "generate/request_parcel.h"

namespace vfm::generate {

/// What a clip costs beside others of the same model: tokens that go through the network.
std::uint64_t clip_cost(const NamedRequest& request, const Extents& latent, bool autoregressive);

/// One round. A collective of the ranks that lead; rank 0 among them reads.
class Round {
 public:
  /// On rank 0: what was read, its costs, and whether there is more to come. Elsewhere nothing.
  /// What was measured of FP8 or of weights in 8 bits comes along.
  Round(dist::Group& leaders, std::vector<Asked> asked, const std::vector<std::uint64_t>& costs,
        bool more, std::optional<double>& output_error);

  bool more() const { return more_; }
  /// Those that this rank is to make.
  std::vector<Asked>& mine() { return mine_; }
  /// Of mine(), in its order. Returns on rank 0 all results of the round, in the order of its
  /// prompts; elsewhere none.
  std::vector<Result> collect(std::vector<Result> made);

 private:
  dist::Group& leaders_;
  std::vector<Asked> asked_, mine_;
  std::vector<int> makers_;  // by item of the round; -1: it cannot be made
  bool more_ = false;
};

}  // namespace vfm::generate
