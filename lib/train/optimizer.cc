// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "ops/adamw.h"
#include "ops/sum_squares.h"

namespace vfm::train {
namespace {

std::vector<Tensor> zeros_like(const nn::ParameterList& parameters) {
  std::vector<Tensor> tensors;
  for (const nn::Parameter* parameter : parameters)
    tensors.push_back(
        Tensor::zeros(parameter->value.shape(), DType::f32, parameter->value.device()));
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
    : m(zeros_like(parameters)),
      v(zeros_like(parameters)),
      recipe_(optimizer),
      ema_recipe_(ema_recipe),
      parameters_(parameters) {
  if (has_ema())
    for (const nn::Parameter* parameter : parameters)
      ema.push_back(parameter->value.clone());
}

double Optimizer::gradient_norm() const {
  std::vector<ops::Extent> gradients;
  for (const nn::Parameter* parameter : parameters_)
    gradients.push_back({parameter->grad.data<float>(), parameter->grad.elements()});
  return std::sqrt(ops::sum_squares(device(), gradients));
}

void Optimizer::update(double lr, double scale) {
  ++updates;
  std::vector<ops::AdamwSlot> slots;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    nn::Parameter& parameter = *parameters_[i];
    ops::AdamwSlot slot;
    slot.value = parameter.value.data<float>();
    slot.gradient = parameter.grad.data<float>();
    slot.first_moment = m[i].data<float>();
    slot.second_moment = v[i].data<float>();
    slot.ema = has_ema() ? ema[i].data<float>() : nullptr;
    slot.count = parameter.value.elements();
    slot.weight_decay = parameter.decay ? static_cast<float>(recipe_.weight_decay) : 0.0f;
    slots.push_back(slot);
  }
  ops::AdamwStep step;
  step.learning_rate = static_cast<float>(lr);
  step.beta1 = static_cast<float>(recipe_.beta1);
  step.beta2 = static_cast<float>(recipe_.beta2);
  step.epsilon = static_cast<float>(recipe_.eps);
  step.gradient_scale = static_cast<float>(scale);
  if (has_ema()) step.ema_decay = static_cast<float>(ema_beta(ema_recipe_, updates));
  step.step = updates;
  ops::adamw(device(), slots, step);
  mark_changed();
}

void Optimizer::swap_ema() {
  if (!has_ema()) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor value = parameters_[i]->value.clone();
    copy(ema[i], parameters_[i]->value);
    copy(value, ema[i]);
  }
  mark_changed();
}

void Optimizer::mark_changed() const {
  for (nn::Parameter* parameter : parameters_)
    ++parameter->version;
}

}  // namespace vfm::train
