// A rank's part of a step through a pipeline: its chunks of the network in the order of the
// schedule, and its messages to and from the neighbouring ranks.
//
// Sends and receives begin where the schedule has them, and end before their values are used; the
// rank computes meanwhile. The residual stream passes between two chunks, with the other tensors of
// nn::Streams, and their gradients back: f32, this rank's tokens. Streams and gradients have groups
// of their own, so on GPUs neither waits for the other. Thread-safety: the thread that made the
// world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dist/mesh.h"
#include "nn/block_shards.h"
#include "train/step/objective.h"
#include "train/step/pipeline_schedule.h"

namespace vfm::train {

/// Receivers of gradients that are summed over ranks during backward. `blocks` sum the gradients
/// of the matrices that they gather, all at once (nn/block_shards.h). `final` is called for each
/// other gradient, once, when it is complete in this step. If they are empty, backward sums
/// nothing.
struct FinalGradients {
  std::vector<nn::BlockShards*> blocks = {};
  ops::Tape::Listener final = {};
};

/// Adds the gradients of the sum of the loss to the parameters' gradients. `batches` are the
/// microbatches of the schedule, the same on all ranks of pp. A microbatch of which nothing could
/// be read is null, and its steps are empty. A collective.
void run_pipeline(const dist::Mesh& mesh, const Objective& objective,
                  std::span<const std::unique_ptr<Batch>> batches, const PipelineSchedule& schedule,
                  const FinalGradients& gradients = {});

}  // namespace vfm::train
