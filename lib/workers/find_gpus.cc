// SPDX-License-Identifier: Apache-2.0
#include "workers/find_gpus.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "workers/worker.h"

namespace vfm::workers {
namespace {

constexpr std::string_view kAll = "all", kCpu = "cpu";
constexpr const char* kGpuWords = "what a worker says of GPUs";

/// Part of CUDA's name of a GPU instance: "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
constexpr std::string_view kInstance = " MIG ";

FoundGpus list_gpus_apart() {
  Worker worker({.index = -1, .name = "the list of GPUs"},
                {.service = std::string(kGpuList), .most_bytes = 1 << 20, .sees_all = true});
  const Parcel told = worker.ask({});
  FoundGpus found;
  found.why_none = need_string(told.words, "why_none", kGpuWords);
  for (const Json& words : told.words->at("gpus")) {
    share::SharedGpu gpu;
    gpu.index = static_cast<int>(found.gpus.size());
    gpu.name = need_string(words, "uuid", kGpuWords);
    gpu.memory = need_integer(words, "memory", kGpuWords);
    found.gpus.push_back(std::move(gpu));
    found.models.push_back(need_string(words, "name", kGpuWords));
  }
  return found;
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::string list_of(const FoundGpus& found) {
  std::string text;
  for (std::size_t i = 0; i < found.gpus.size(); ++i)
    text += vfm::format("{}{} ({}, {}, {})", i ? ", " : "", i, found.models[i], found.gpus[i].name,
                        format_bytes(static_cast<std::uint64_t>(found.gpus[i].memory)));
  return text;
}

void check_words(const std::vector<std::string>& devices) {
  if (devices.empty()) fail_usage("--device names no device");
  const auto cpus = std::ranges::count(devices, kCpu);
  for (const std::string& device : devices) {
    if (device != kAll && device != kCpu && !number_of(device))
      fail_usage(
          "--device: '{}' is not auto, cpu, cuda or all alone, nor the number of a GPU, as in 0,2; "
          "UUIDs are for CUDA_VISIBLE_DEVICES, which says what all are",
          device);
    if (device == kAll && devices.size() > 1)
      fail_usage("--device all names all GPUs; leave out the others");
    if (device != kCpu && std::ranges::count(devices, device) > 1)
      fail_usage("--device names GPU {} twice", device);
  }
  if (cpus > 0 && cpus < static_cast<std::ptrdiff_t>(devices.size()))
    fail_usage(
        "--device: a GPU and cpu do not compute the same bits, and a result may not depend on "
        "which one made it; name GPUs alone, or cpu alone");
}

std::vector<share::SharedGpu> processors(std::size_t count) {
  const auto memory =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  std::vector<share::SharedGpu> gpus;
  for (std::size_t i = 0; i < count; ++i)
    gpus.push_back(
        {.index = -1 - static_cast<int>(i), .name = vfm::format("cpu {}", i), .memory = memory});
  return gpus;
}

}  // namespace

std::vector<share::SharedGpu> find_gpus(const std::vector<std::string>& devices) {
  check_words(devices);
  return devices[0] == kCpu ? processors(devices.size()) : choose_gpus(devices, list_gpus_apart());
}

std::vector<share::SharedGpu> choose_gpus(const std::vector<std::string>& devices,
                                          const FoundGpus& found) {
  if (found.gpus.empty())
    fail_usage(
        "--device {}: there is no usable GPU: {}; compute on the processor with --device cpu",
        devices[0], found.why_none);
  std::vector<share::SharedGpu> gpus;
  std::vector<std::string> models;
  const auto take = [&](std::size_t i) {
    gpus.push_back(found.gpus[i]);
    models.push_back(found.models[i]);
  };
  for (const std::string& device : devices) {
    if (device == kAll) {
      for (std::size_t i = 0; i < found.gpus.size(); ++i)
        take(i);
      continue;
    }
    const auto number = static_cast<std::size_t>(*number_of(device));
    if (number >= found.gpus.size())
      fail_usage("--device {}: there is no such GPU; there are {}", device, list_of(found));
    take(number);
  }
  for (const std::string& model : models)
    if (model.find(kInstance) != std::string::npos)
      fail_usage(
          "--device {}: {} is an instance of a GPU, and CUDA shows a program only "
          "one; compute on that with --device cuda",
          devices[0], model);
  const auto other = std::ranges::find_if(models, [&](const auto& m) { return m != models[0]; });
  if (other != models.end())
    log_warning(
        "--device: {} and {} may differ in the last bits of what they compute; for results that "
        "can be repeated name GPUs of one kind",
        models[0], *other);
  return gpus;
}

Device device_of(const std::vector<share::SharedGpu>& gpus) {
  return !gpus.empty() && gpus[0].index >= 0 ? Device::cuda : Device::cpu;
}

}  // namespace vfm::workers
