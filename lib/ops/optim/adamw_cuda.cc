// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/optim/adamw_kernels.h"
#include "ops/optim/optimizer_lists_cuda.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {
namespace {

kernels::OptimizerSlots lists_for(std::span<const AdamwSlot> slots) {
  std::vector<kernels::OptimizerSlot> list;
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

}  // namespace vfm::ops
