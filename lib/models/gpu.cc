// SPDX-License-Identifier: Apache-2.0
#include "models/gpu.h"

namespace vfm::models {

double usable_gpu_memory(double total, double free) {
  return std::min(0.95 * total, free) - 2.0 * (1 << 30);
}

double Gpu::usable() const {
  if (cpu) return 0.8 * memory;
  return usable_gpu_memory(memory, memory);
}

}  // namespace vfm::models
