// SPDX-License-Identifier: Apache-2.0
#include "nn/parameter.h"

#include "ops/optim/split_master.h"
#include "tensor/device.h"

namespace vfm::nn {

Tensor Parameter::read() const {
  if (!split()) return value;
  if (!low.defined()) return high.to(DType::f32);
  const Tensor joined(shape(), DType::f32, device());
  ops::join_master(high, low, joined);
  return joined;
}

void Parameter::write(const Tensor& values) const {
  if (!split())
    copy(values, value);
  else if (low.defined())
    ops::split_master(values.to(device()), high, low);
  else
    convert(values.to(device()), high);
}

ops::AdamwSlot adamw_slot(const Parameter& parameter) {
  ops::AdamwSlot slot;
  if (parameter.split()) {
    slot.high = parameter.high.data<std::uint16_t>();
    slot.low = parameter.low.data<std::uint16_t>();
  } else {
    slot.value = parameter.value.data<float>();
  }
  slot.gradient = parameter.grad.data<float>();
  slot.count = parameter.elements();
  return slot;
}

std::int64_t element_count(const ParameterList& parameters) {
  std::int64_t sum = 0;
  for (const Parameter* parameter : parameters)
    sum += parameter->elements();
  return sum;
}

void zero_gradients(const ParameterList& parameters) {
  for (const Parameter* parameter : parameters)
    zero_bytes(parameter->grad.raw(), parameter->device(), parameter->grad.bytes());
}

}  // namespace vfm::nn
