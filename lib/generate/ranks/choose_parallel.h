// The layout of the ranks that make a clip together, chosen from predicted times (--parallel auto).
//
// All layouts that the model can have, of all ranks or a divisor of their number, are costed with
// each kind of cp: one rank's computation, counted on Device::meta, and its exchanges, at the rates
// of a table. The fastest layout that fits into memory is chosen. On a GPU the rates are its own
// (models/gpu_table.h), or an H100's if it is not in the table; on the CPU they are rough, and only
// compare layouts. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "generate/generate.h"
#include "models/gpu_table.h"

namespace vfm::generate {

/// The rates by which the job's layouts are compared.
models::Gpu comparing_rates(const GenerateJob& job, int per_node);

struct CostedLayout {
  ClipParallel parallel;
  double seconds = 0;  ///< of a clip, predicted
  double memory = 0;   ///< bytes of a rank
  bool fits = true;
};

/// All layouts of `ranks`, `per_node` on a machine, for the clip of job.defaults: those that fit
/// into memory first, then by time. Sharded as the job says. Throws what Estimate throws.
std::vector<CostedLayout> costed_layouts(const GenerateJob& job, int ranks, int per_node);

/// The first of costed_layouts(); -v logs it and the next ones. If none fits, the one that needs
/// least memory, with a warning.
ClipParallel choose_parallel(const GenerateJob& job, int ranks, int per_node);

}  // namespace vfm::generate
