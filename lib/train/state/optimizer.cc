// SPDX-License-Identifier: Apache-2.0
#include "train/state/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/folder/load_tensors.h"
#include "ops/optim/split_master.h"
#include "ops/optim/sums.h"

namespace vfm::train {
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
                     const nn::ParameterList& parameters, const dist::Mesh* mesh)
    : recipe_(optimizer), ema_recipe_(ema_recipe), parameters_(parameters) {
  const OptimizerKind& kind = optimizer_kind(recipe_);
  for (const UpdateRule* rule : kind.rules) {
    Ruled ruled{rule, {}, {}, {}};
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (&kind.rule_of(recipe_, *parameters[i]) == rule) {
        ruled.numbers.push_back(i);
        ruled.kept.push_back({parameters[i], {}, {}});
      }
    if (ruled.kept.empty()) continue;
    if (rule->looks_beyond()) {
      nn::ParameterList own;
      for (const std::size_t i : ruled.numbers)
        own.push_back(parameters[i]);
      ruled.parts.emplace(mesh, own);
    }
    for (const StateTensor& tensor : rule->state(recipe_)) {
      OptimizerState& state =
          state_.emplace_back(OptimizerState{std::string(tensor.name), tensor.dtype, {}, {}});
      for (std::size_t k = 0; k < ruled.kept.size(); ++k) {
        nn::Parameter* parameter = parameters[ruled.numbers[k]];
        if (tensor.block > 1) parameter = &add_blocks(*parameter, tensor);
        state.parameters.push_back(parameter);
        state.tensors.push_back(tensor.block > 1 ? parameter->value
                                                 : Tensor::zeros(parameter->shape(), tensor.dtype,
                                                                 parameter->device()));
        ruled.kept[k].state.push_back(state.tensors.back());
      }
    }
    ruled_.push_back(std::move(ruled));
  }
  restart_ema();
}

/// A parameter's tensor with an element a block, in the form of a parameter, whole or not here.
nn::Parameter& Optimizer::add_blocks(const nn::Parameter& of, const StateTensor& tensor) {
  const std::int64_t all = tensor.elements(element_count(of.placement.global));
  const bool here = models::held_range(of).elements() > 0;
  nn::Parameter& blocks = blocks_.emplace_back();
  blocks.name = of.name;
  blocks.placement = {{all}, {0}};
  blocks.value = Tensor::zeros({here ? all : 0}, tensor.dtype, of.device());
  return blocks;
}

const OptimizerState& Optimizer::state(std::string_view name) const {
  const auto found = std::ranges::find(state_, name, &OptimizerState::name);
  if (found == state_.end()) fail("the optimizer keeps no '{}'", name);
  return *found;
}

void Optimizer::draw_state(std::size_t i, double size, const UpdateRule::Draw& draw) {
  for (const Ruled& ruled : ruled_)
    if (const auto found = std::ranges::find(ruled.numbers, i); found != ruled.numbers.end())
      ruled.rule->draw_state(
          recipe_, ruled.kept[static_cast<std::size_t>(found - ruled.numbers.begin())], size, draw);
}

const std::vector<Tensor>& Optimizer::ema() const {
  download_.finish();
  return ema_;
}

void Optimizer::begin_change() {
  if (const auto act = std::exchange(before_change_, {})) act();
}

void Optimizer::restart_ema() {
  begin_change();
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
  UpdateStep step{.learning_rate = lr, .factor = factor, .number = updates + 1};
  const bool averages = has_ema() && step.number % ema_recipe_.every == 0;
  if (averages) step.average_decay = static_cast<float>(ema_decay(step.number));
  for (Ruled& ruled : ruled_)
    for (std::size_t k = 0; k < ruled.kept.size(); ++k)
      ruled.kept[k].average = averages && !ema_on_host() ? ema_[ruled.numbers[k]] : Tensor();
  begin_change();
  download_.release();
  const double norm = update_all(step, squares);
  if (!std::isfinite(norm)) return norm;
  updates = step.number;
  if (averages && ema_on_host()) average_on_host(step.average_decay);
  return norm;
}

double Optimizer::squares() const {
  std::vector<ops::Extent> gradients;
  for (const nn::Parameter* parameter : parameters_)
    gradients.push_back({parameter->grad.data<float>(), parameter->elements()});
  return ops::sum_squares(device(), gradients);
}

double Optimizer::update_all(const UpdateStep& step, std::optional<double> squares) {
  if (!squares && ruled_.size() == 1)
    if (const auto norm = ruled_[0].rule->clipped_update(recipe_, step, ruled_[0].kept))
      return *norm;
  const double norm = std::sqrt(squares ? *squares : this->squares()) * step.factor;
  if (!std::isfinite(norm)) return norm;
  UpdateStep clipped = step;
  if (recipe_.clip > 0) clipped.factor *= std::min(1.0, recipe_.clip / norm);
  for (const Ruled& ruled : ruled_)
    ruled.rule->update(recipe_, clipped, ruled.kept, ruled.parts ? &*ruled.parts : nullptr);
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
  begin_change();
  download_.finish();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const nn::Parameter& parameter = *parameters_[i];
    const Tensor values = parameter.split() ? parameter.read() : parameter.value.clone();
    parameter.write(ema_[i]);
    copy(values, ema_[i]);
  }
}

}  // namespace vfm::train
