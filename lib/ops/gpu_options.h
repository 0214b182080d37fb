// What a program's options say of how a GPU computes, set at once; and what its --version says.
// Thread-safety: before the first op, from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace vfm::ops {

/// ops/determinism.h; ops/attention/attention_choice.h ("auto", "own" or "cudnn"); and the folder
/// where what was timed is kept for the next run, if any. Throws Error{usage} for another
/// attention, and for one that is asked for by name where `device` is the CPU.
void set_gpu_options(Device device, bool deterministic, std::string_view attention,
                     const std::string& cache_folder);

/// Lines for --version: what there is of CUDA and cuDNN. Opens both.
std::string gpu_versions();

}  // namespace vfm::ops
