// Predicts how long counted kernels (tensor/meta.h) take at a GPU's rates, by kind of work.
//
// A kernel call takes as long as its operations or its bytes, whichever is longer. Between calls is
// a gap. models/predict.h builds predictions from these times. This header needs no JSON, because
// the compute core has none.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "models/gpu.h"
#include "tensor/meta.h"

namespace vfm::models {

/// All calls of one kind of work.
struct TimeLine {
  std::string_view name;  ///< "products", "attention, forward", ...
  double seconds = 0, calls = 0, flops = 0, bytes = 0;
};

/// Returns the time of `work`, and of the `optimizer`'s kernels after backward, which have lines of
/// their own. Leaves out lines without calls. The longest line is first, but "gaps" is last.
std::vector<TimeLine> predict(const Gpu& gpu, const KernelCalls& work,
                              const KernelCalls& optimizer = {});
/// Returns the sum of `lines` as one line.
TimeLine sum_of(std::string_view name, const std::vector<TimeLine>& lines);

}  // namespace vfm::models
