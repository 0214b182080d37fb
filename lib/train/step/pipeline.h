// A rank's part of a step through a pipeline: its chunks of the network, in the order of the
// schedule, and what it exchanges with the ranks before and after.
//
// Sends and receives begin where the schedule has them, and are waited for where what they carry is
// used; so a rank computes meanwhile. Between two chunks passes the residual stream alone, and its
// gradient: f32, this rank's tokens. Streams and gradients go by groups of their own, so on GPUs
// neither waits for the other.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "dist/mesh.h"
#include "nn/block_shards.h"
#include "train/step/objective.h"
#include "train/step/pipeline_schedule.h"

namespace vfm::train {

/// Who sums gradients over ranks while backward still runs: `blocks` those of matrices that it
/// gathers, all at once (nn/block_shards.h), and `final` is told of others, each once, when it gets
/// nothing more in this step. Nobody: null and empty.
struct FinalGradients {
  nn::BlockShards* blocks = nullptr;
  ops::Tape::Listener final = {};
};

/// Adds the gradients of the sum of the loss to the parameters' gradients. `batches` are the
/// microbatches of the schedule, the same on all ranks of pp; one of which nothing could be read
/// is null, and its steps are empty. A collective.
void run_pipeline(const dist::Mesh& mesh, const Objective& objective,
                  std::span<const std::unique_ptr<Batch>> batches, const PipelineSchedule& schedule,
                  const FinalGradients& gradients = {});

}  // namespace vfm::train
