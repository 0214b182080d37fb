// Which parts of a network are faster in FP8 where ranks share it (--fp8 all).
//
// On a GPU where cuDNN's attention runs, that is faster in bf16 than our own in FP8. But where keys
// go round among ranks, parts of attention are our own kernels' in any type, and in FP8 half of the
// bytes go round. So of such a layout both are costed (generate/estimate.h), at the rates that
// layouts are compared by, and the faster is taken. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generate/estimate.h"
#include "generate/generate.h"
#include "models/gpu_table.h"

namespace vfm::generate {

/// What the estimate, which is of a layout, has of time and memory.
struct LayoutCost {
  double seconds = 0;  ///< of a clip, predicted
  double memory = 0;   ///< bytes of a rank, the most
};

/// Of the estimate's layout, with those parts of the job's FP8 that are faster so; these the
/// estimate has from then on. `text`: its text_part().
LayoutCost cost_in_faster_fp8(Estimate& estimate, const GenerateJob& job, const models::Gpu& gpu,
                              const ModelPart& text);

/// Leaves out of job.fp8 what is slower in it, of which a warning says so. `gpu`: the rates, with
/// ranks that share clips. Throws what Estimate throws.
void settle_fp8(GenerateJob& job, const models::Gpu& gpu);

}  // namespace vfm::generate
