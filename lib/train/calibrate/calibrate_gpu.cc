// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "models/gpu.h"
#include "tensor/device.h"
#include "train/calibrate/calibrate.h"
#include "train/calibrate/gpu_probes.h"
#include "train/calibrate/link_times.h"

namespace vfm::train {
namespace {

using ProbeClock = std::chrono::steady_clock;

double seconds_since(ProbeClock::time_point begin) {
  return std::chrono::duration<double>(ProbeClock::now() - begin).count();
}

/// One call, of many that are queued one after the other.
double seconds_of_call(const std::function<void()>& run, int calls) {
  synchronize_gpu();
  const auto begin = ProbeClock::now();
  for (int i = 0; i < calls; ++i)
    run();
  synchronize_gpu();
  return seconds_since(begin) / calls;
}

/// Calls of a probe.
struct Timed {
  double seconds = 0;  ///< which a quarter of the batches are not above, as of the CPU's kernels
  double spread = 0;   ///< how much longer than the fastest the one in the middle took
  std::size_t calls = 0;
};

Timed time_probe(const GpuProbe& probe, dist::World& world, double seconds) {
  const std::function<void()> run = probe.make(Device::cuda);
  run();  // what is tried out at first
  const double once = seconds_of_call(run, 2);
  constexpr double kBatch = 0.02;  // seconds: the wait at its end is nothing beside it
  const int calls = static_cast<int>(std::clamp(kBatch / once, 1.0, 1000.0));
  const auto begin = ProbeClock::now();
  std::vector<double> times;
  constexpr std::size_t kLeast = 5;
  do {
    world.barrier();
    times.push_back(seconds_of_call(run, calls));
  } while (calibration_goes_on(world, times.size() < kLeast ? 1 : seconds - seconds_since(begin)));
  std::ranges::sort(times);
  return {times[times.size() / 4], times[times.size() / 2] / times[0] - 1,
          times.size() * static_cast<std::size_t>(calls)};
}

/// "H200" of "NVIDIA H200, 139.8 GiB, ...".
std::string title_of(const std::string& described) {
  const std::string name = described.substr(0, described.find(','));
  return name.starts_with("NVIDIA ") ? name.substr(7) : name;
}

}  // namespace

Json calibrate_gpu(const CalibrateOptions& options, dist::World& world, Progress& progress) {
  const auto begin = ProbeClock::now();
  const std::vector<GpuProbe> probes = gpu_probes();
  progress.start("probes", probes.size());
  std::vector<ProbeTime> times;
  std::size_t calls = 0;
  double spread = 0;
  Json list = Json::array();
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const GpuProbe& probe = probes[i];
    const double left = 0.9 * options.seconds - seconds_since(begin);
    try {
      const Timed timed = time_probe(probe, world, left / static_cast<double>(probes.size() - i));
      times.push_back({probe.rate, work_of(probe), timed.seconds});
      list.push_back({{"name", probe.name}, {"seconds", timed.seconds}});
      calls += timed.calls;
      spread += timed.spread;
    } catch (const GpuError&) {
      throw;
    } catch (const Error& error) {
      // The same on all ranks, whose GPUs are alike.
      if (world.rank() == 0) log_info("not measured: {}: {}", probe.name, error.what());
    }
    progress.add(1);
  }
  models::Gpu gpu;
  gpu.name = "here";
  gpu.title = title_of(describe_gpu());
  gpu.memory = static_cast<double>(gpu_memory().total);
  gpu.per_node = std::max(1, world.least_local_size());
  gpu.peak = models::gpu_peak_tflops() * 1e12;
  tell_rates(gpu, times);
  const LinkTimes links = measure_links(world, Device::cuda);
  gpu.inside = gpu.across = links.link;
  if (world.rank() > 0) return nullptr;
  double error = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double predicted = predicted_seconds(gpu, times[i].work);
    list[i]["predicted"] = predicted;
    error += std::abs(predicted / times[i].seconds - 1) / static_cast<double>(times.size());
  }
  Json table = to_json(gpu);
  table["measured"] = {
      {"gpu", describe_gpu()},
      {"ranks", world.size()},
      {"seconds", seconds_since(begin)},
      {"steps", calls},
      {"spread", spread / static_cast<double>(std::max<std::size_t>(1, list.size()))},
      {"kernel_error", error},
      {"probes", list},
      {"links", links.measured}};
  return table;
}

}  // namespace vfm::train
