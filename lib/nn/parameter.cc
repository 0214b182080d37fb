// SPDX-License-Identifier: Apache-2.0
#include "nn/parameter.h"

#include <algorithm>

#include "ops/optim/split_master.h"
#include "tensor/device.h"

namespace vfm::nn {
namespace {

Tensor part(const Tensor& all, std::int64_t begin, std::int64_t end) {
  return all.reshape({all.elements()}).rows(begin, end);
}

}  // namespace

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

Tensor Parameter::read(std::int64_t begin, std::int64_t end) const {
  if (!split()) return part(value, begin, end);
  const Tensor upper = part(high, begin, end);
  if (!low.defined()) return upper.to(DType::f32);
  const Tensor joined(upper.shape(), DType::f32, device());
  ops::join_master(upper, part(low, begin, end), joined);
  return joined;
}

std::vector<Tensor> Parameter::view(std::int64_t begin, std::int64_t end) const {
  if (!split() || !low.defined()) return {read(begin, end)};
  return {part(high, begin, end), part(low, begin, end)};
}

void Parameter::write(const Tensor& values, std::int64_t begin) const {
  const std::int64_t end = begin + values.elements();
  if (!split())
    copy(values, part(value, begin, end));
  else if (low.defined())
    ops::split_master(values.to(device()), part(high, begin, end), part(low, begin, end));
  else
    convert(values.to(device()), part(high, begin, end));
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

Stretch state_stretch(const Parameter& parameter, int rank, int ranks) {
  const std::int64_t elements = parameter.elements();
  const auto within = [&](int number) {
    return std::clamp<std::int64_t>(share(parameter.stack, number, ranks) - parameter.before, 0,
                                    elements);
  };
  return {within(rank), within(rank + 1)};
}

ParameterList states_of(const ParameterList& parameters) {
  ParameterList states;
  for (Parameter* parameter : parameters)
    states.push_back(parameter->state ? parameter->state.get() : parameter);
  return states;
}

std::int64_t element_count(const ParameterList& parameters) {
  std::int64_t sum = 0;
  for (const Parameter* parameter : parameters)
    sum += parameter->elements();
  return sum;
}

void zero_gradients(const ParameterList& parameters) {
  for (const Parameter* parameter : parameters)
    if (parameter->grad.defined())
      zero_bytes(parameter->grad.raw(), parameter->device(), parameter->grad.bytes());
}

}  // namespace vfm::nn
