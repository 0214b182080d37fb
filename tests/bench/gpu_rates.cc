// The rates that vfm-train calibrate measures of a GPU, fitted here of the same ops at the sizes
// of large models, by the compute core alone: a record of each rate, and how far what the rates say
// is from the times that they were fitted to. Links between GPUs are no part of it.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <vector>

#include "gpu.h"
#include "models/gpu.h"
#include "train/calibrate/gpu_probes.h"

using namespace vfm;
using models::Gpu;
using train::ProbeTime;

namespace {

struct Told {
  const char* name;
  double Gpu::*rate;
  double unit;
  const char* of;
};
constexpr Told kTold[] = {
    {"products", &Gpu::products, 1e12, "TFLOP/s"},
    {"products in FP8", &Gpu::products_fp8, 1e12, "TFLOP/s"},
    {"products in f32", &Gpu::peak_f32, 1e12, "TFLOP/s"},
    {"attention forward", &Gpu::attention_forward, 1e12, "TFLOP/s"},
    {"attention backward", &Gpu::attention_backward, 1e12, "TFLOP/s"},
    {"attention forward, own kernel", &Gpu::own_forward, 1e12, "TFLOP/s"},
    {"attention backward, own kernel", &Gpu::own_backward, 1e12, "TFLOP/s"},
    {"attention in FP8", &Gpu::attention_fp8, 1e12, "TFLOP/s"},
    {"convolutions", &Gpu::convolutions, 1e12, "TFLOP/s"},
    {"convolutions, own kernels", &Gpu::own_convolutions, 1e12, "TFLOP/s"},
    {"memory", &Gpu::bandwidth, 1e9, "GB/s"},
    {"copies to the host", &Gpu::host_link, 1e9, "GB/s"},
    {"gap between kernels", &Gpu::gap, 1e-6, "us"},
};

/// The time of a probe; nothing where the GPU has no such products.
void add_time(const train::GpuProbe& probe, std::vector<ProbeTime>& times) {
  const train::ProbeWork work = work_of(probe);  // on Device::meta: in a rehearsal, too
  if (bench::rehearsal()) return;
  try {
    times.push_back({probe.rate, work, bench::seconds_per_call(probe.make(Device::cuda), 0.2)});
  } catch (const GpuError&) {
    throw;
  } catch (const Error& error) {
    std::fprintf(stderr, "not measured: %s: %s\n", probe.name.c_str(), error.what());
  }
}

void tell(const std::vector<ProbeTime>& times) {
  Gpu gpu;
  gpu.peak = models::gpu_peak_tflops() * 1e12;
  train::tell_rates(gpu, times);
  for (const Told& one : kTold)
    bench::print({"rates", one.name}, gpu.*one.rate / one.unit, one.of);
  double error = 0;
  for (const ProbeTime& one : times)
    error += std::abs(train::predicted_seconds(gpu, one.work) / one.seconds - 1);
  bench::print({"rates", "apart from their times"}, 100 * error / static_cast<double>(times.size()),
               "%");
}

}  // namespace

int main() {
  return bench::run([] {
    std::vector<ProbeTime> times;
    for (const train::GpuProbe& probe : train::gpu_probes())
      add_time(probe, times);
    if (!bench::rehearsal()) return tell(times);
    for (const Told& one : kTold)
      bench::print_error({"rates", one.name}, bench::kRehearsed);
    bench::print_error({"rates", "apart from their times"}, bench::kRehearsed);
  });
}
