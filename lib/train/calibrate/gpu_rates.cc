// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/kernel_time.h"
#include "train/calibrate/gpu_probes.h"

namespace vfm::train {
namespace {

using models::Gpu;

/// Without the time of bytes where there is arithmetic, which takes longer: then a probe's time is
/// linear in one over each rate.
ProbeWork arithmetic_alone(const ProbeWork& work) {
  ProbeWork alone{{}, work.copied};
  for (const auto& [call, calls] : work.calls) {
    KernelCall one = call;
    if (one.flops > 0) one.bytes = 0;
    alone.calls[one] += calls;
  }
  return alone;
}

/// a + b x = y of the relative error, neither below zero: gaps and seconds of a byte.
void tell_memory(Gpu& gpu, const std::vector<ProbeTime>& times) {
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const ProbeTime& one : times) {
    if (one.rate != &Gpu::bandwidth) continue;
    double kernels = 0, bytes = 0;
    for (const auto& [call, calls] : one.work.calls)
      kernels += calls, bytes += calls * call.bytes;
    kernels /= one.seconds, bytes /= one.seconds;
    aa += kernels * kernels, ab += kernels * bytes, bb += bytes * bytes;
    a += kernels, b += bytes;
  }
  if (bb == 0) fail("the rate of a GPU's memory was not measured");
  const double all = aa * bb - ab * ab;
  gpu.gap = all > 1e-9 * aa * bb ? std::max(0.0, (a * bb - b * ab) / all) : 0;
  gpu.bandwidth = bb / (b - gpu.gap * ab);
}

/// From all its probes together; whether there are any.
bool tell(Gpu& gpu, double Gpu::*rate, const std::vector<ProbeTime>& times) {
  double work = 0, seconds = 0;
  for (const ProbeTime& one : times) {
    if (one.rate != rate) continue;
    const ProbeWork alone = arithmetic_alone(one.work);
    gpu.*rate = 1e300;
    const double others = predicted_seconds(gpu, alone);
    gpu.*rate = 1;
    work += predicted_seconds(gpu, alone) - others;
    // What is left to it, at least a tenth.
    seconds += std::max(one.seconds / 10, one.seconds - others);
  }
  gpu.*rate = seconds > 0 ? work / seconds : 0;
  return gpu.*rate > 0;
}

}  // namespace

double predicted_seconds(const Gpu& gpu, const ProbeWork& work) {
  const double copies = work.copied > 0 ? work.copied / gpu.host_link : 0;
  return copies + models::sum_of("", models::predict(gpu, work.calls)).seconds;
}

void tell_rates(Gpu& gpu, const std::vector<ProbeTime>& times) {
  tell_memory(gpu, times);
  gpu.peak_f32 = gpu.peak = gpu.peak > 0 ? gpu.peak : 1;
  const bool known = gpu.peak > 1;
  if (!tell(gpu, &Gpu::products, times)) fail("a GPU's products were not measured");
  if (!known)
    for (const ProbeTime& one : times)
      if (one.rate == &Gpu::products) {
        Gpu fastest = gpu;
        tell(fastest, &Gpu::products, {one});
        gpu.peak = std::max(gpu.peak, fastest.products);
      }
  if (!tell(gpu, &Gpu::peak_f32, times)) gpu.peak_f32 = gpu.peak;
  if (!tell(gpu, &Gpu::products_fp8, times)) gpu.products_fp8 = gpu.products;
  tell(gpu, &Gpu::own_forward, times);
  tell(gpu, &Gpu::own_backward, times);
  if (!tell(gpu, &Gpu::attention_forward, times)) gpu.attention_forward = gpu.own_forward;
  if (!tell(gpu, &Gpu::attention_backward, times)) gpu.attention_backward = gpu.own_backward;
  if (!tell(gpu, &Gpu::attention_fp8, times)) gpu.attention_fp8 = gpu.own_forward;
  tell(gpu, &Gpu::convolutions, times);
  if (!tell(gpu, &Gpu::own_convolutions, times)) gpu.own_convolutions = gpu.convolutions;
  tell(gpu, &Gpu::host_link, times);
  // Where nobody knows it, it is the fastest that was seen.
  if (!known)
    for (const double rate : {gpu.peak_f32, gpu.products, gpu.products_fp8 / 2, gpu.own_forward,
                              gpu.own_backward, gpu.attention_forward, gpu.attention_backward,
                              gpu.attention_fp8 / 2, gpu.convolutions, gpu.own_convolutions})
      gpu.peak = std::max(gpu.peak, rate);
}

}  // namespace vfm::train
