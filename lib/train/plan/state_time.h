// The time of a step in which weights and gradients travel between ranks without being hidden by
// computing. They travel as in train/step/gradients.h, train/state/state_shards.h and
// nn/block_shards.h. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/plan/pass_work.h"

namespace vfm::train {

/// The computing of a rank during a step: seconds in all passes, and the number of passes.
struct Meanwhile {
  double computing = 0;
  double passes = 1;
  int chunks = 1;       ///< chunks of a stage; the first block of each has to be waited for
  bool graphs = false;  ///< steps are CUDA graphs; nothing travels while they run
};

/// Seconds that computing does not hide.
struct StateTime {
  double gradients = 0;  ///< sums of gradients over ranks
  double shards = 0;  ///< gathers of weights; with sharded blocks also the sums of their gradients
};
StateTime state_time(const models::Gpu& gpu, int per_node, const Candidate& candidate,
                     const StageWork& work, const Meanwhile& meanwhile);

}  // namespace vfm::train
