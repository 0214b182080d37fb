// Running the kernels of an op (ops/kernel.h) on a device: the one place that chooses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/device.h"

/// Calls function(...) of the namespace of `device`: cuda:: or cpu::. In a build without CUDA there
/// are no tensors on a GPU, and nothing of cuda:: is needed.
#define VFM_RUN(device, function, ...)                                               \
  (::vfm::kHaveCuda && (device) == ::vfm::Device::cuda ? cuda::function(__VA_ARGS__) \
                                                       : cpu::function(__VA_ARGS__))
