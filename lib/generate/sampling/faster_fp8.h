// Chooses the parts of a shared network that are faster in FP8 (--fp8 all).
//
// On a GPU cuDNN's attention in bf16 is faster than our own in FP8. But in ring attention our own
// kernels compute parts in any type, and FP8 exchanges half the bytes. So for layouts with a ring
// the costs of both are estimated (generate/cost/estimate.h), at the rates for comparing layouts,
// and the faster is taken.
// Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generate/cost/estimate.h"
#include "generate/generate.h"
#include "models/gpu_table.h"

namespace vfm::generate {

/// The estimated time and memory of a layout.
struct ParallelCost {
  double seconds = 0;  ///< predicted time of a clip
  double memory = 0;   ///< peak bytes of a rank
};

/// Returns the cost of the estimate's layout with the job's FP8 parts that are faster in FP8, and
/// sets these parts in the estimate. `text` is the estimate's text_part().
ParallelCost cost_in_faster_fp8(ClipEstimate& estimate, const GenerateJob& job,
                                const models::Gpu& gpu, const ModelPart& text);

/// Removes from job.fp8 the parts that are slower in FP8, with a warning. `opened` is the job's
/// model, `gpu` has the rates. For jobs whose ranks share clips. Throws what ClipEstimate throws.
void settle_fp8(GenerateJob& job, const models::OpenedModel& opened, const models::Gpu& gpu);

}  // namespace vfm::generate
