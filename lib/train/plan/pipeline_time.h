// The time that the ranks of a pipeline take for a step by the run's own schedule
// (train/step/pipeline_schedule.h), with stages of unequal time and messages between them.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "train/step/pipeline_schedule.h"

namespace vfm::train {

/// Seconds of a microbatch of cost 1 on each stage, all chunks of the stage together; and of what a
/// chunk sends to the next one, or gets back as gradients.
struct StageSeconds {
  std::vector<double> forward, backward;
  std::vector<double> messages;  ///< of each chunk but the last; empty: nothing takes time
};

/// The time at which the last rank ends. A rank follows its list in order, and waits for a message
/// when it uses the values; what is sent arrives after the seconds of `messages`. `costs` are the
/// costs of the microbatches.
double run_schedule(const PipelineSchedule& schedule, const PipelineShape& shape,
                    const StageSeconds& stages, std::span<const double> costs);

/// The same for `microbatches` of cost 1, in order. If there are many, only some are run: after
/// some turns each turn of pp microbatches takes as long as the turn before.
double pipeline_seconds(const PipelineShape& shape, const StageSeconds& stages, int microbatches);

/// The same for microbatches of these costs, in the order that a run gives them.
double pipeline_seconds(const PipelineShape& shape, const StageSeconds& stages,
                        std::span<const double> costs);

}  // namespace vfm::train
