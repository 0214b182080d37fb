// Sets the options of programs on how a GPU computes, and describes CUDA and cuDNN for --version.
// Thread-safety: call before the first op, from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace vfm::ops {

/// Sets the switch of ops/determinism.h, the attention of ops/attention/attention_choice.h ("auto",
/// "own" or "cudnn") and the folder that keeps timings of matrix products for the next run; empty
/// for none. Throws Error{usage} for another attention, and for "own" or "cudnn" on the CPU.
void set_gpu_options(Device device, bool deterministic, std::string_view attention,
                     const std::string& cache_folder);

/// Returns lines for --version on CUDA and cuDNN. Loads both libraries.
std::string gpu_versions();

}  // namespace vfm::ops
