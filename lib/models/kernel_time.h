// How long kernels that were counted (tensor/meta.h) take at a GPU's rates, by sort of work.
//
// A call of a kernel takes as long as its operations or its bytes, whichever is longer; between
// calls is a gap. What is made of that: models/predict.h. Without JSON, as the compute core has
// none. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "models/gpu.h"
#include "tensor/meta.h"

namespace vfm::models {

/// All calls of one sort.
struct TimeLine {
  std::string_view name;  ///< "products", "attention, forward", ...
  double seconds = 0, calls = 0, flops = 0, bytes = 0;
};

/// The time of `work`, and of what comes after backward, which has lines of its own. Without lines
/// of nothing; the longest first, but "gaps" last.
std::vector<TimeLine> predict(const Gpu& gpu, const KernelCalls& work,
                              const KernelCalls& optimizer = {});
/// All of them as one line.
TimeLine sum_of(std::string_view name, const std::vector<TimeLine>& lines);

}  // namespace vfm::models
