// SPDX-License-Identifier: Apache-2.0
#include "train/state/optimizer.h"

#include <algorithm>
#include <cmath>

#include "ops/optim/adamw.h"
#include "ops/optim/moving_average.h"
#include "ops/optim/split_master.h"

namespace vfm::train {
namespace {

std::vector<Tensor> zeros_like(const nn::ParameterList& parameters, DType dtype) {
  std::vector<Tensor> tensors;
  for (const nn::Parameter* parameter : parameters)
    tensors.push_back(Tensor::zeros(parameter->shape(), dtype, parameter->device()));
  return tensors;
}

}  // namespace

double power_ema_gamma(double s) {
  // Between -1 and the bound the cubic changes its sign once, at its largest root.
  const double q = 1 / (s * s);
  const auto cubic = [&](double g) { return ((g + 7) * g + 16 - q) * g + 12 - q; };
  double low = -1, high = 1 / s + 10;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (cubic(middle) < 0 ? low : high) = middle;
  }
  return high;
}

double ema_beta(const EmaRecipe& recipe, std::int64_t n) {
  const double count = static_cast<double>(n);
  if (recipe.mode == "power") return std::pow(1 - 1 / count, power_ema_gamma(recipe.length) + 1);
  return std::min(recipe.decay, (1 + count) / (10 + count));
}

Optimizer::Optimizer(const OptimizerRecipe& optimizer, const EmaRecipe& ema_recipe,
                     const nn::ParameterList& parameters)
    : m(zeros_like(parameters, optimizer.moment_type())),
      v(zeros_like(parameters, optimizer.moment_type())),
      recipe_(optimizer),
      ema_recipe_(ema_recipe),
      parameters_(parameters) {
  restart_ema();
}

const std::vector<Tensor>& Optimizer::ema() const {
  download_.finish();
  return ema_;
}

void Optimizer::restart_ema() {
  download_.finish();
  ema_.clear();
  if (!has_ema()) return;
  for (const nn::Parameter* parameter : parameters_) {
    const Tensor values = parameter->read();
    ema_.push_back(ema_on_host()        ? values.to(Device::cpu)
                   : parameter->split() ? values
                                        : values.clone());
  }
}

/// Weight of the old average after the updates up to `last` since it was last changed.
double Optimizer::ema_decay(std::int64_t last) const {
  double decay = 1;
  for (std::int64_t n = last - ema_recipe_.every + 1; n <= last; ++n)
    decay *= ema_beta(ema_recipe_, n);
  return decay;
}

double Optimizer::update(double lr, double factor, std::optional<double> squares) {
  const std::int64_t number = updates + 1;
  const bool averages = has_ema() && number % ema_recipe_.every == 0;
  std::vector<ops::AdamwSlot> slots;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const nn::Parameter& parameter = *parameters_[i];
    ops::AdamwSlot slot = nn::adamw_slot(parameter);
    slot.first_moment = m[i].raw();
    slot.second_moment = v[i].raw();
    slot.moments = m[i].dtype();
    slot.ema = averages && !ema_on_host() ? ema_[i].data<float>() : nullptr;
    slot.weight_decay = parameter.decay ? static_cast<float>(recipe_.weight_decay) : 0.0f;
    slots.push_back(slot);
  }
  ops::AdamwStep step;
  step.learning_rate = static_cast<float>(lr);
  step.beta1 = static_cast<float>(recipe_.beta1);
  step.beta2 = static_cast<float>(recipe_.beta2);
  step.epsilon = static_cast<float>(recipe_.eps);
  if (averages) step.ema_decay = static_cast<float>(ema_decay(number));
  step.step = number;
  download_.release();
  const double norm =
      squares ? ops::adamw_of_norm(device(), slots, step, factor, recipe_.clip, *squares)
              : ops::clipped_adamw(device(), slots, step, factor, recipe_.clip);
  if (!std::isfinite(norm)) return norm;
  updates = number;
  if (averages && ema_on_host()) average_on_host(step.ema_decay);
  return norm;
}

/// Begins to: the weights are copied while the next step computes, and averaged on a thread.
void Optimizer::average_on_host(float decay) {
  constexpr auto kMost = static_cast<std::int64_t>(Download::kMostBytes / sizeof(float));
  std::vector<Tensor> parts;  // of the average
  std::vector<Download::Piece> pieces;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const nn::Parameter& parameter = *parameters_[i];
    const std::int64_t count = parameter.elements();
    const auto piece = [&](const Tensor& all, std::int64_t begin, std::int64_t end) {
      const Tensor part = all.reshape({count}).rows(begin, end);
      return Download::Part{part.raw(), part.bytes()};
    };
    for (std::int64_t begin = 0; begin < count; begin += kMost) {
      const std::int64_t end = std::min(begin + kMost, count);
      parts.push_back(ema_[i].reshape({count}).rows(begin, end));
      if (parameter.split())
        pieces.push_back({piece(parameter.high, begin, end), piece(parameter.low, begin, end)});
      else
        pieces.push_back({piece(parameter.value, begin, end)});
    }
  }
  download_.start(pieces, [=](std::size_t i, const std::byte* bytes) {
    const Shape& shape = parts[i].shape();
    Tensor values = Tensor::borrow(bytes, shape, DType::f32, nullptr);
    if (pieces[i].size() == 2) {
      const Tensor high = Tensor::borrow(bytes, shape, DType::bf16, nullptr);
      const Tensor low = Tensor::borrow(bytes + high.bytes(), shape, DType::i16, nullptr);
      values = Tensor(shape);
      ops::join_master(high, low, values);
    }
    ops::moving_average(parts[i], values, decay);
  });
}

void Optimizer::swap_ema() {
  if (!has_ema()) return;
  download_.finish();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const nn::Parameter& parameter = *parameters_[i];
    const Tensor values = parameter.split() ? parameter.read() : parameter.value.clone();
    parameter.write(ema_[i]);
    copy(values, ema_[i]);
  }
}

}  // namespace vfm::train
