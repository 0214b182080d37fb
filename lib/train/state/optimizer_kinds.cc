// SPDX-License-Identifier: Apache-2.0
#include "train/state/optimizer_kinds.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/optim/adamw.h"
#include "train/state/muon_rule.h"

namespace vfm::train {
namespace {

/// ops/optim/adamw.h, with moments of one type for all parameters.
class AdamwRule final : public UpdateRule {
 public:
  bool takes(const OptimizerRecipe& /*recipe*/, const nn::Parameter& /*parameter*/) const override {
    return true;
  }

  std::vector<StateTensor> state(const OptimizerRecipe& recipe) const override {
    return {{"adam_m", recipe.moment_type()}, {"adam_v", recipe.moment_type()}};
  }

  void update(const OptimizerRecipe& recipe, const UpdateStep& step,
              std::span<const KeptParameter> parameters,
              const StateParts* /*parts*/) const override {
    ops::AdamwStep own = step_of(recipe, step);
    own.gradient_scale = static_cast<float>(step.factor);
    ops::adamw(device_of(parameters), slots_of(recipe, parameters), own);
  }

  // On a GPU the norm and what it clips are found without the host.
  std::optional<double> clipped_update(const OptimizerRecipe& recipe, const UpdateStep& step,
                                       std::span<const KeptParameter> parameters) const override {
    return ops::clipped_adamw(device_of(parameters), slots_of(recipe, parameters),
                              step_of(recipe, step), step.factor, recipe.clip);
  }

  void draw_state(const OptimizerRecipe& recipe, const KeptParameter& kept, double size,
                  const Draw& draw) const override {
    const double first = size * (1 - recipe.beta1), second = size * size * (1 - recipe.beta2);
    const Tensor m = draw(" m"), v = draw(" v");
    for (float& number : m.floats())
      number = static_cast<float>(first * number);
    for (float& number : v.floats())
      number = static_cast<float>(second * (0.5 + number * number));
    for (const auto& [from, to] : {std::pair(m, kept.state[0]), std::pair(v, kept.state[1])})
      copy(from.to(to.dtype()).to(to.device()), to);
  }

 private:
  static Device device_of(std::span<const KeptParameter> parameters) {
    return parameters.front().parameter->device();
  }

  static std::vector<ops::AdamwSlot> slots_of(const OptimizerRecipe& recipe,
                                              std::span<const KeptParameter> parameters) {
    std::vector<ops::AdamwSlot> slots;
    for (const KeptParameter& kept : parameters) {
      ops::AdamwSlot& slot = slots.emplace_back(nn::adamw_slot(*kept.parameter));
      slot.first_moment = kept.state[0].raw();
      slot.second_moment = kept.state[1].raw();
      slot.moments = kept.state[0].dtype();
      slot.ema = kept.average.defined() ? kept.average.data<float>() : nullptr;
      slot.weight_decay = kept.parameter->decay ? static_cast<float>(recipe.weight_decay) : 0.0f;
    }
    return slots;
  }

  static ops::AdamwStep step_of(const OptimizerRecipe& recipe, const UpdateStep& step) {
    ops::AdamwStep own;
    own.learning_rate = static_cast<float>(step.learning_rate);
    own.beta1 = static_cast<float>(recipe.beta1);
    own.beta2 = static_cast<float>(recipe.beta2);
    own.epsilon = static_cast<float>(recipe.eps);
    own.ema_decay = step.average_decay;
    own.step = step.number;
    return own;
  }
};

}  // namespace

const UpdateRule& OptimizerKind::rule_of(const OptimizerRecipe& recipe,
                                         const nn::Parameter& parameter) const {
  for (const UpdateRule* rule : rules)
    if (rule->takes(recipe, parameter)) return *rule;
  fail("the optimizer '{}' has no rule for '{}'", name, parameter.name);
}

std::span<const OptimizerKind> optimizer_kinds() {
  static const AdamwRule adamw;
  static const std::vector<OptimizerKind> all = {{"adamw", false, {&adamw}},
                                                 {"muon", true, {&muon_rule(), &adamw}}};
  return all;
}

const OptimizerKind& optimizer_kind(const OptimizerRecipe& recipe) {
  return *std::ranges::find(optimizer_kinds(), recipe.kind, &OptimizerKind::name);
}

double state_bytes(const OptimizerRecipe& recipe, const nn::ParameterList& parameters) {
  double bytes = 0;
  for (const nn::Parameter* parameter : parameters)
    for (const StateTensor& tensor :
         optimizer_kind(recipe).rule_of(recipe, *parameter).state(recipe))
      bytes += static_cast<double>(parameter->elements()) *
               static_cast<double>(dtype_size(tensor.dtype));
  return bytes;
}

}  // namespace vfm::train
