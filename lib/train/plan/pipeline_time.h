// How long the ranks of a pipeline take for a step, where its stages take unequal time and messages
// travel: what a run's own schedule (train/step/pipeline_schedule.h) comes to.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "train/step/pipeline_schedule.h"

namespace vfm::train {

/// Seconds of a microbatch of cost 1 on each stage, all its chunks together; and of a message
/// between stages.
struct StageSeconds {
  std::vector<double> forward, backward;
  double message = 0;
};

/// The end of the last rank's last step. A rank does its list in order and waits for what comes to
/// it when that is used; what it sends arrives `message` later. `costs` of the microbatches.
double run_schedule(const PipelineSchedule& schedule, const PipelineShape& shape,
                    const StageSeconds& stages, std::span<const double> costs);

/// The same of `microbatches` that all cost 1, in the order in which they come. Of many a few are
/// run: from some on each turn of pp of them takes as long as the one before.
double pipeline_seconds(const PipelineShape& shape, const StageSeconds& stages, int microbatches);

/// And of these costs in the order that a run would give them.
double pipeline_seconds(const PipelineShape& shape, const StageSeconds& stages,
                        std::span<const double> costs);

}  // namespace vfm::train
