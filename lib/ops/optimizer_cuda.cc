// SPDX-License-Identifier: Apache-2.0
#include "ops/optimizer_cuda.h"

#include <cstddef>
#include <vector>

#include "kernels/optimizer.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

// The slots of one call, and the memory they stand in.
struct Uploaded {
  Tensor slots, chunks;
  kernels::OptimizerSlots all;

  explicit Uploaded(const std::vector<kernels::OptimizerSlot>& list) {
    std::vector<std::int64_t> counts;
    for (const kernels::OptimizerSlot& slot : list)
      counts.push_back(slot.count);
    const int number = static_cast<int>(list.size());
    std::vector<kernels::OptimizerChunk> parts(
        static_cast<std::size_t>(kernels::optimizer_chunks(counts.data(), number, nullptr)));
    kernels::optimizer_chunks(counts.data(), number, parts.data());
    slots = upload(list);
    chunks = upload(parts);
    all = {reinterpret_cast<const kernels::OptimizerSlot*>(slots.raw()),
           reinterpret_cast<const kernels::OptimizerChunk*>(chunks.raw()),
           static_cast<std::int64_t>(parts.size())};
  }
};

}  // namespace

void adamw_cuda(std::span<const AdamwSlot> slots, const AdamwStep& step) {
  std::vector<kernels::OptimizerSlot> list;
  for (const AdamwSlot& from : slots) {
    kernels::OptimizerSlot slot;
    slot.value = from.value;
    slot.high = from.high;
    slot.low = from.low;
    slot.moment_type = from.moments == DType::bf16 ? kernels::Type::bf16 : kernels::Type::f32;
    slot.gradient = from.gradient;
    slot.first_moment = from.first_moment;
    slot.second_moment = from.second_moment;
    slot.ema = from.ema;
    slot.count = from.count;
    slot.weight_decay = from.weight_decay;
    list.push_back(slot);
  }
  const Uploaded uploaded(list);
  kernels::AdamwCall call;
  call.all = uploaded.all;
  call.learning_rate = step.learning_rate;
  call.beta1 = step.beta1;
  call.beta2 = step.beta2;
  call.epsilon = step.epsilon;
  call.gradient_scale = step.gradient_scale;
  call.ema_decay = step.ema_decay;
  call.step = step.step;
  check_gpu(kernels::adamw(call, compute_stream()), "run AdamW");
}

double sum_squares_cuda(std::span<const Extent> arrays) {
  std::vector<kernels::OptimizerSlot> list;
  for (const Extent& array : arrays) {
    kernels::OptimizerSlot slot;
    slot.gradient = array.data;
    slot.count = array.count;
    list.push_back(slot);
  }
  const Uploaded uploaded(list);
  constexpr auto kDouble = static_cast<std::int64_t>(sizeof(double));
  const Tensor partial({kernels::kGradientPartials * kDouble}, DType::u8, Device::cuda);
  const Tensor sum({kDouble}, DType::u8, Device::cuda);
  check_gpu(kernels::gradient_squares(uploaded.all, static_cast<double*>(partial.raw()),
                                      static_cast<double*>(sum.raw()), compute_stream()),
            "add the squares of the gradients");
  return *sum.to(Device::cpu).data<double>();
}

}  // namespace vfm::ops
