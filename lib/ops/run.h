// Running a kernel on a device: the CPU version for this machine's instruction set, or the CUDA
// one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/isa.h"
#include "tensor/device.h"

/// Calls function(...) of x_cpu.h, in the best version for the CPU, or cuda::function(...), which
/// has the same arguments with pointers into the GPU's memory.
#define VFM_RUN(device, function, ...)                                                           \
  (::vfm::kHaveCuda && (device) == ::vfm::Device::cuda ? ::vfm::ops::cuda::function(__VA_ARGS__) \
                                                       : VFM_CALL(function, __VA_ARGS__))
