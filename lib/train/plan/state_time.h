// What weights and gradients of a step take on their way between ranks, beside what computing
// hides: as train/step/gradients.h, train/state/state_shards.h and nn/block_shards.h have them
// travel. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/plan/pass_work.h"

namespace vfm::train {

/// What happens meanwhile, of a rank's step: seconds of computing in all passes, and passes.
struct Meanwhile {
  double computing = 0;
  double passes = 1;
  int chunks = 1;       ///< of a stage, each of which begins with a block that is not there
  bool graphs = false;  ///< steps are CUDA graphs, under which nothing travels
};

/// Seconds that nothing hides.
struct StateTime {
  double gradients = 0;  ///< sums over ranks
  double shards = 0;     ///< weights that are gathered; of blocks their gradients' sums, too
};
StateTime state_time(const models::Gpu& gpu, int per_node, const Candidate& candidate,
                     const StageWork& work, const Meanwhile& meanwhile);

}  // namespace vfm::train
