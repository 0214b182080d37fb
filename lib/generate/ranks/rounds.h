// Prompts over ranks: one rank reads them, several make the clips, and results come back in the
// order of the prompts.
//
// Work is in rounds: each leading rank gets some requests, by cost, makes them, and then all meet
// again. So rank 0 holds only one round's prompts, and reads a slow pipe slowly.
// Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "dist/group.h"
#include "generate/request/request_parcel.h"

namespace vfm::generate {

/// The relative cost of a clip among clips of one model: its tokens through the network.
std::uint64_t clip_cost(const NamedRequest& request, const Extents& latent, bool autoregressive);

/// One round. A collective of the ranks that lead; rank 0 among them reads.
class Round {
 public:
  /// On rank 0 takes the requests, their costs, and whether more follow; elsewhere nothing. Also
  /// passes on the measured error of FP8 or 8-bit weights.
  Round(dist::Group& leaders, std::vector<Asked> asked, const std::vector<std::uint64_t>& costs,
        bool more, std::optional<double>& output_error);

  bool more() const { return more_; }
  /// The requests that this rank must make.
  std::vector<Asked>& mine() { return mine_; }
  /// Takes the results of mine(), in its order. Returns on rank 0 all results of the round, in the
  /// order of the prompts; elsewhere none.
  std::vector<Result> collect(std::vector<Result> made);

 private:
  dist::Group& leaders_;
  std::vector<Asked> asked_, mine_;
  std::vector<int> makers_;  // by item of the round; -1: it cannot be made
  bool more_ = false;
};

}  // namespace vfm::generate
