// Chooses how ranks share a clip, by predicted times (--parallel auto).
//
// Computes the cost of all layouts that the model can have, of all ranks or a divisor of their
// number, with each kind of cp. The cost is one rank's computation, counted on Device::meta, and
// its exchanges, at the rates of a table. Chooses the fastest layout that fits into memory. On a
// GPU the rates are the GPU's own (models/gpu_table.h), or an H100's if the GPU is not in the
// table. On the CPU the rates are rough, and only compare layouts. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "generate/generate.h"

namespace vfm::generate {

struct CostedLayout {
  dist::Layout parallel;
  double seconds = 0;  ///< predicted time of a clip
  double memory = 0;   ///< bytes per rank
  bool fits = true;
};

/// All layouts of `ranks`, `per_node` of them on a machine, for the clip of job.defaults and the
/// job's model, which is opened: those that fit into memory first, each by time. Option `shard` is
/// the job's. Throws what ClipEstimate throws.
std::vector<CostedLayout> costed_layouts(const GenerateJob& job, const models::OpenedModel& opened,
                                         int ranks, int per_node);

/// Returns the first of costed_layouts(). -v logs it and the next ones. If none fits, returns the
/// layout that needs the least memory, with a warning.
dist::Layout choose_parallel(const GenerateJob& job, const models::OpenedModel& opened, int ranks,
                             int per_node);

}  // namespace vfm::generate
