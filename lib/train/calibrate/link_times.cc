// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate/link_times.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <vector>

#include "base/json.h"
#include "tensor/device.h"
#include "train/calibrate/kernel_times.h"

namespace vfm::train {
namespace {

/// The shortest of some rounds of `work`, on this rank and its device.
double shortest(dist::World& world, Device device, int rounds, const std::function<void()>& work) {
  double least = 0;
  for (int i = 0; i < rounds; ++i) {
    world.barrier();
    if (device == Device::cuda) synchronize_gpu();
    const auto begin = std::chrono::steady_clock::now();
    work();
    if (device == Device::cuda) synchronize_gpu();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

}  // namespace

LinkTimes measure_links(dist::World& world, Device device) {
  LinkTimes times{{1e12, 0}, Json::array()};
  const int ranks = world.size();
  if (ranks == 1) return times;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const std::unique_ptr<dist::Group> group = world.group("calibrate", all);
  const int right = (group->rank() + 1) % ranks, left = (group->rank() + ranks - 1) % ranks;
  std::vector<AlikeCalls> calls;
  std::vector<std::int64_t> sizes = {1, 16, 256, 4096, 16384};
  // Of the size of a block's weights, which links of GPUs need to reach their rate.
  if (device == Device::cuda) sizes.insert(sizes.end(), {65536, 262144});
  for (const std::int64_t kib : sizes) {
    const std::int64_t rows = kib * 256 / ranks;  // of f32, of each part
    const Tensor part = Tensor::zeros({rows}, DType::f32, device),
                 whole = Tensor::zeros({rows * ranks}, DType::f32, device),
                 other = Tensor::zeros({rows * ranks}, DType::f32, device);
    const std::pair<const char*, std::function<void()>> kOperations[] = {
        {"exchange", [&] { group->exchange(right, whole, left, other).wait(); }},
        {"all_gather", [&] { group->all_gather(part, whole).wait(); }},
        {"reduce_scatter", [&] { group->reduce_scatter(whole, part).wait(); }},
        {"all_reduce", [&] { group->all_reduce(whole).wait(); }},
        {"all_to_all", [&] { group->all_to_all(whole, other).wait(); }}};
    for (const auto& [name, work] : kOperations) {
      world.traffic().reset();
      work();
      const auto bytes = static_cast<double>(world.traffic().of("calibrate").bytes);
      const double seconds = shortest(world, device, kib < 1000 ? 20 : 5, work);
      times.measured->push_back({{"operation", name}, {"bytes", bytes}, {"seconds", seconds}});
      calls.push_back({0, bytes, seconds, 1});
    }
  }
  // A link has one rate for messages of all sizes.
  const models::KernelRate rate = fit_rate(calls, false);
  times.link = {1 / rate.of_byte, rate.seconds};
  return times;
}

}  // namespace vfm::train
