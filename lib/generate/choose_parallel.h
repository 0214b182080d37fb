// The layout of the ranks that make a clip together, chosen from predicted times (--parallel auto).
//
// Costed are all layouts of the ranks, or of a divisor of their number, that the model can have,
// with each kind of cp: what one rank computes, counted on Device::meta, and what it exchanges, at
// the rates of a table. Taken is the fastest of those whose memory is there. On a GPU the rates are
// its own (models/gpu_table.h), or an H100's where it is not in the table; on the CPU they are
// judged, as those are, and only compare layouts with each other. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "generate/generate.h"
#include "models/gpu_table.h"

namespace vfm::generate {

/// The rates that layouts of the job are compared by.
models::Gpu comparing_rates(const GenerateJob& job, int per_node);

struct CostedLayout {
  ClipParallel parallel;
  double seconds = 0;  ///< of a clip, predicted
  double memory = 0;   ///< bytes of a rank
  bool fits = true;
};

/// All that so many ranks can have, `per_node` of them on a machine, those that fit first, and of
/// these the fastest. Shards as the job says. Of the clip of job.defaults. Throws what Estimate
/// throws.
std::vector<CostedLayout> costed_layouts(const GenerateJob& job, int ranks, int per_node);

/// The first of them, which -v tells, with the next ones. None fits: a warning, and the one that
/// needs least memory.
ClipParallel choose_parallel(const GenerateJob& job, int ranks, int per_node);

}  // namespace vfm::generate
