// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <list>
#include <vector>

#include "kernels/block_codes.h"
#include "kernels/elementwise.h"
#include "kernels/optimizer.h"
#include "ops/optim/optim_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

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
  kernels::OptimizerSlots there() const {
    return {reinterpret_cast<const kernels::OptimizerSlot*>(slots_there.raw()),
            reinterpret_cast<const kernels::OptimizerChunk*>(chunks_there.raw()), chunks};
  }
};

// The lists of the last few different calls stay in the GPU's memory, as they are some megabytes
// for a large model and training alternates between one or two.
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
  return known->front().there();
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

kernels::OptimizerSlots lists_for(std::span<const AdamwSlot> slots) {
  Slots list;
  for (const AdamwSlot& from : slots) {
    kernels::OptimizerSlot slot;
    slot.value = from.value;
    slot.high = from.high;
    slot.low = from.low;
    slot.moment_type = kernel_type(from.moments);
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

kernels::AdamwCall adamw_call(const kernels::OptimizerSlots& all, const AdamwStep& step) {
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

}  // namespace

void cuda::adamw(std::span<const AdamwSlot> slots, const AdamwStep& step) {
  kernels::AdamwCall call = adamw_call(lists_for(slots), step);
  call.gradient_scale = step.gradient_scale;
  check_gpu(kernels::adamw(call, compute_stream()), "run AdamW");
}

double cuda::clipped_adamw(std::span<const AdamwSlot> slots, const AdamwStep& step, double factor,
                           double most) {
  kernels::AdamwCall call = adamw_call(lists_for(slots), step);
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

double cuda::sum_squares(std::span<const Extent> arrays) {
  Slots list;
  for (const Extent& array : arrays) {
    kernels::OptimizerSlot slot;
    slot.gradient = array.data;
    slot.count = array.count;
    list.push_back(slot);
  }
  if (list.size() > 1) return read_double(sum_gradients(lists_of(list)));
  // One matrix at a time, as Muon takes them: kept lists would drive out the large ones.
  const Lists one(list);
  return read_double(sum_gradients(one.there()));
}

}  // namespace vfm::ops

namespace vfm::ops::cuda {

namespace {

kernels::CodedPart coded_part(const BlocksOfPart& blocks) {
  const PartOfWhole& part = blocks.part;
  return {part.count, part.begin, part.length, part.stride, part.first, blocks.first, blocks.end};
}

kernels::CodeTable table_of(const float* numbers, int count) {
  kernels::CodeTable table{};
  std::copy_n(numbers, count, table.v);
  return table;
}

}  // namespace

void decode_blocks(const std::uint8_t* codes, const float* scales, const float* numbers_of,
                   const BlocksOfPart& blocks, float* numbers) {
  check_gpu(kernels::decode_blocks(codes, scales, table_of(numbers_of, 256), coded_part(blocks),
                                   numbers, compute_stream()),
            "decode blocks");
}

void scales_of_blocks(const float* numbers, const BlocksOfPart& blocks, float* scales) {
  check_gpu(kernels::scales_of_blocks(numbers, coded_part(blocks), scales, compute_stream()),
            "find the scales of blocks");
}

void encode_blocks(const float* numbers, const float* scales, const float* limits,
                   const BlocksOfPart& blocks, std::uint8_t* codes) {
  check_gpu(kernels::encode_blocks(numbers, scales, table_of(limits, 255), coded_part(blocks),
                                   codes, compute_stream()),
            "encode blocks");
}

void greater_in_place(float* target, const float* other, std::int64_t n) {
  check_gpu(kernels::greater_in_place(target, other, n, compute_stream()),
            "run the greater of two");
}

void scaled_sum(const TypedArray& out, float a, const TypedArray& x, float b, const TypedArray& y,
                std::int64_t n) {
  check_gpu(kernels::scaled_sum(kernel_type(out.type), out.at, a, kernel_type(x.type), x.at, b,
                                kernel_type(y.type), y.at, n, compute_stream()),
            "run the scaled sum");
}

void split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low, std::int64_t n) {
  check_gpu(kernels::split_weights(weights, high, low, n, compute_stream()), "split weights");
}

void join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                  std::int64_t n) {
  check_gpu(kernels::join_weights(high, low, weights, n, compute_stream()), "join weights");
}

}  // namespace vfm::ops::cuda
