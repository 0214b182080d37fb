// What is timed on a GPU to tell its rates: a list of ops at the sizes of large models, each for
// one rate of models::Gpu, and the arithmetic from times to rates. No clock is here.
//
// A probe runs on any device. On Device::meta its kernels are counted as those of a GPU, as steps
// that are predicted are; so a rate that is told from them gives back the time of the probe
// (models/kernel_time.h).
// Thread-safety: the thread that drives the GPU.
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
  double models::Gpu::*rate;  ///< what its time tells
  /// Allocates there, and gives what is timed; which may be called again and again. Throws Error
  /// where the GPU has no such products (FP8).
  std::function<std::function<void()>(Device)> make;
};

/// At the sizes of large models; or, to try them out, at these over `part`. A probe also has
/// kernels of other rates, which are told before its own.
std::vector<GpuProbe> gpu_probes(int part = 1);

/// What a GPU runs of it, counted once; and bytes that go to the host and back.
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

/// Sets the rates of `gpu` that there are times of, by least squares of the relative error for the
/// memory's rate and the gaps, then each by the sum of its probes. What a GPU does not have is like
/// what comes nearest: FP8 like bf16. `peak` must be what the data sheet says, or 0: then it is the
/// fastest of the products. Throws Error without times of the memory's rate and of products.
void tell_rates(models::Gpu& gpu, const std::vector<ProbeTime>& times);

/// What `gpu` says of a probe's time.
double predicted_seconds(const models::Gpu& gpu, const ProbeWork& work);

}  // namespace vfm::train
