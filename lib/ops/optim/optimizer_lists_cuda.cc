// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/optimizer_lists_cuda.h"

#include <algorithm>
#include <cstddef>
#include <list>

#include "tensor/device.h"

namespace vfm::ops {
namespace {

using Slots = std::vector<kernels::OptimizerSlot>;

// The lists of a call, in the GPU's memory.
struct Lists {
  Slots slots;
  Tensor slots_there, chunks_there;
  std::int64_t chunks = 0;

  explicit Lists(const Slots& all) : slots(all) {
    std::vector<std::int64_t> counts;
    for (const kernels::OptimizerSlot& slot : slots)
      counts.push_back(slot.count);
    const int number = static_cast<int>(slots.size());
    chunks = kernels::optimizer_chunks(counts.data(), number, nullptr);
    std::vector<kernels::OptimizerChunk> parts(static_cast<std::size_t>(chunks));
    kernels::optimizer_chunks(counts.data(), number, parts.data());
    slots_there = upload(slots);
    chunks_there = upload(parts);
  }
};

}  // namespace

kernels::OptimizerSlots lists_of(const Slots& slots) {
  constexpr std::size_t kKept = 4;
  static auto* const known = new std::list<Lists>;  // the last one used is first
  const auto found = std::find_if(known->begin(), known->end(),
                                  [&](const Lists& lists) { return lists.slots == slots; });
  if (found != known->end())
    known->splice(known->begin(), *known, found);
  else
    known->emplace_front(slots);
  if (known->size() > kKept) known->pop_back();
  const Lists& lists = known->front();
  return {reinterpret_cast<const kernels::OptimizerSlot*>(lists.slots_there.raw()),
          reinterpret_cast<const kernels::OptimizerChunk*>(lists.chunks_there.raw()), lists.chunks};
}

Tensor doubles(std::int64_t count) {
  return Tensor({count * static_cast<std::int64_t>(sizeof(double))}, DType::u8, Device::cuda);
}

double read_double(const Tensor& tensor) {
  return *tensor.to(Device::cpu).data<double>();
}

Tensor sum_gradients(const kernels::OptimizerSlots& all) {
  const Tensor partial = doubles(kernels::kGradientPartials), sum = doubles(1);
  check_gpu(
      kernels::gradient_squares(all, partial.data<double>(), sum.data<double>(), compute_stream()),
      "add the squares of the gradients");
  return sum;
}

}  // namespace vfm::ops
