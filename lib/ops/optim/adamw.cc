// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/optim/optim_kernels.h"
#include "ops/optim/sums.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

Touching work_of(Device device, std::span<const AdamwSlot> slots) {
  Work work;
  for (const AdamwSlot& slot : slots) {
    const std::size_t read_and_written =
        4 + 2 * dtype_size(slot.moments) + (slot.ema != nullptr ? 4 : 0);
    work.bytes += static_cast<double>(slot.count) * static_cast<double>(4 + 2 * read_and_written);
  }
  return {device, work};
}

std::vector<Extent> gradients_of(std::span<const AdamwSlot> slots) {
  std::vector<Extent> gradients;
  for (const AdamwSlot& slot : slots)
    gradients.push_back({slot.gradient, slot.count});
  return gradients;
}

}  // namespace

void adamw(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step) {
  VFM_RUN(work_of(device, slots), adamw, slots, step);
}

double clipped_adamw(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step,
                     double factor, double most) {
  if (device == Device::meta) sum_squares(device, gradients_of(slots));  // is of the kernel
  return VFM_ASK(0.0, work_of(device, slots), clipped_adamw, slots, step, factor, most);
}

void cpu::adamw(std::span<const AdamwSlot> slots, const AdamwStep& step) {
  const double steps = static_cast<double>(step.step);
  const float correction1 = static_cast<float>(1 - std::pow(double{step.beta1}, steps));
  const float correction2 = static_cast<float>(1 - std::pow(double{step.beta2}, steps));
  // Chunks of all parameters in one parallel region: a model has hundreds of small ones. The chunk
  // stays in the first-level caches between the two loops of adamw_chunk.
  struct Chunk {
    const AdamwSlot* slot;
    std::int64_t begin, end;
  };
  constexpr std::int64_t kChunk = 4096;
  std::vector<Chunk> chunks;
  for (const AdamwSlot& slot : slots)
    for (std::int64_t begin = 0; begin < slot.count; begin += kChunk)
      chunks.push_back({&slot, begin, std::min(slot.count, begin + kChunk)});
  const auto count = static_cast<std::int64_t>(chunks.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
    adamw_chunk(*chunk.slot, step, correction1, correction2, chunk.begin, chunk.end);
  }
}

double cpu::clipped_adamw(std::span<const AdamwSlot> slots, const AdamwStep& step, double factor,
                          double most) {
  const double norm = std::sqrt(sum_squares(Device::cpu, gradients_of(slots))) * factor;
  if (!std::isfinite(norm)) return norm;
  AdamwStep scaled = step;
  scaled.gradient_scale = static_cast<float>(factor * (most > 0 ? std::min(1.0, most / norm) : 1));
  cpu::adamw(slots, scaled);
  return norm;
}

}  // namespace vfm::ops
