// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/optimizer_cuda.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <vector>

#include "kernels/optimizer.h"
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

// The lists of `slots`. Training gives the same ones at every step, or two in turn, and they are
// some megabytes for a large model: the last few stay there.
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

kernels::OptimizerSlots lists_of(std::span<const AdamwSlot> slots) {
  Slots list;
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
  return lists_of(list);
}

kernels::AdamwCall describe(const kernels::OptimizerSlots& all, const AdamwStep& step) {
  kernels::AdamwCall call;
  call.all = all;
  call.learning_rate = step.learning_rate;
  call.beta1 = step.beta1;
  call.beta2 = step.beta2;
  call.epsilon = step.epsilon;
  call.ema_decay = step.ema_decay;
  call.step = step.step;
  return call;
}

Tensor doubles(std::int64_t count) {
  return Tensor({count * static_cast<std::int64_t>(sizeof(double))}, DType::u8, Device::cuda);
}

double read_double(const Tensor& tensor) {
  return *tensor.to(Device::cpu).data<double>();
}

// The sum of squares of the gradients, as one double.
Tensor sum_gradients(const kernels::OptimizerSlots& all) {
  const Tensor partial = doubles(kernels::kGradientPartials), sum = doubles(1);
  check_gpu(
      kernels::gradient_squares(all, partial.data<double>(), sum.data<double>(), compute_stream()),
      "add the squares of the gradients");
  return sum;
}

}  // namespace

void adamw_cuda(std::span<const AdamwSlot> slots, const AdamwStep& step) {
  kernels::AdamwCall call = describe(lists_of(slots), step);
  call.gradient_scale = step.gradient_scale;
  check_gpu(kernels::adamw(call, compute_stream()), "run AdamW");
}

double clipped_adamw_cuda(std::span<const AdamwSlot> slots, const AdamwStep& step, double factor,
                          double most) {
  kernels::AdamwCall call = describe(lists_of(slots), step);
  const Tensor sum = sum_gradients(call.all), norm = doubles(1);
  const Tensor scale({1}, DType::f32, Device::cuda);
  kernels::ClipScale clip;
  clip.sum = sum.data<double>();
  clip.factor = factor;
  clip.most = most;
  clip.norm = norm.data<double>();
  clip.scale = scale.data<float>();
  check_gpu(kernels::clip_scale(clip, compute_stream()), "clip the gradients");
  call.device_scale = clip.scale;
  check_gpu(kernels::adamw(call, compute_stream()), "run AdamW");
  return read_double(norm);
}

double sum_squares_cuda(std::span<const Extent> arrays) {
  Slots list;
  for (const Extent& array : arrays) {
    kernels::OptimizerSlot slot;
    slot.gradient = array.data;
    slot.count = array.count;
    list.push_back(slot);
  }
  return read_double(sum_gradients(lists_of(list)));
}

}  // namespace vfm::ops
