// Probes of a GPU's rates: ops at the sizes of large models, each for one rate of models::Gpu, and
// the arithmetic from times to rates. Nothing here measures time.
//
// A probe runs on any device. On Device::meta its kernels are counted as those of a GPU, just as
// for predicted steps: a rate that is found from a probe's time predicts that time again
// (models/kernel_time.h). Thread-safety: the thread that drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/gpu.h"
#include "tensor/meta.h"

namespace vfm::train {

struct GpuProbe {
  std::string name;           ///< "products, 8192 tokens, width 4096"
  double models::Gpu::*rate;  ///< the rate that its time determines
  /// Allocates on the device and returns the function to time, which may be called repeatedly.
  /// Throws Error if the GPU has no such products (FP8).
  std::function<std::function<void()>(Device)> make;
};

/// Probes at the sizes of large models, or for tests at these sizes over `part`. A probe also has
/// kernels of other rates, which are found before its own.
std::vector<GpuProbe> gpu_probes(int part = 1);

/// The kernels of a probe on a GPU, each counted once, and bytes that are copied to the host and
/// back.
struct ProbeWork {
  KernelCalls calls;
  double copied = 0;
};
ProbeWork work_of(const GpuProbe& probe);

struct ProbeTime {
  double models::Gpu::*rate;
  ProbeWork work;
  double seconds = 0;
};

/// Sets the rates of `gpu` for which there are times: the memory's rate and the gaps by least
/// squares of the relative error, then each other rate by the sum of its probes. A rate without
/// probes is set to the nearest one, as FP8 to bf16. gpu.peak must be the data sheet's value, or 0;
/// then it becomes the highest rate of products. Throws Error without times for the memory's rate
/// and products.
void tell_rates(models::Gpu& gpu, const std::vector<ProbeTime>& times);

/// The time of a probe by the rates of `gpu`.
double predicted_seconds(const models::Gpu& gpu, const ProbeWork& work);

}  // namespace vfm::train
