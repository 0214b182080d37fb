// SPDX-License-Identifier: Apache-2.0
#include "models/gpu.h"

#include <utility>

#include "tensor/device.h"

namespace vfm::models {

double peak_tflops(std::string_view gpu) {
  // NVIDIA's data sheets, without sparsity. The first name that is found counts.
  constexpr std::pair<std::string_view, double> kKnown[] = {
      {"H100 PCIe", 756.5}, {"H100 NVL", 835.5}, {"H100", 989.4}, {"H200 NVL", 835.5},
      {"H200", 989.4},      {"GH200", 989.4},    {"H800", 989.4}, {"GB200", 2500},
      {"GB300", 2500},      {"B200", 2250},      {"B300", 2250},  {"B100", 1750},
      {"A100", 312},        {"A800", 312},       {"A40", 149.7},  {"A30", 165},
      {"L40S", 362.05},     {"L40", 181.05},     {"L4", 121}};
  for (const auto& [part, rate] : kKnown)
    if (const std::size_t at = gpu.find(part); at != std::string_view::npos) {
      const std::size_t end = at + part.size();  // an "A4000" is no A40
      if (end == gpu.size() || gpu[end] < '0' || gpu[end] > '9') return rate;
    }
  return 0;
}

double gpu_peak_tflops() {
  return peak_tflops(describe_gpu());
}

double usable_gpu_memory(double total, double free) {
  return std::min(0.95 * total, free) - 2.0 * (1 << 30);
}

double Gpu::usable() const {
  if (cpu) return 0.8 * memory;
  return usable_gpu_memory(memory, memory);
}

}  // namespace vfm::models
