// SPDX-License-Identifier: Apache-2.0
#include "train/state/muon_rule.h"

#include <algorithm>
#include <cmath>

#include "ops/optim/orthogonalize.h"
#include "ops/optim/sums.h"

namespace vfm::train {
namespace {

/// Root mean square of AdamW's updates, as it was measured.
constexpr double kUpdateSize = 0.2;

class MuonRule final : public UpdateRule {
 public:
  bool takes(const OptimizerRecipe& /*recipe*/, const nn::Parameter& parameter) const override {
    return parameter.hidden;
  }

  std::vector<StateTensor> state(const OptimizerRecipe& recipe) const override {
    return {{"muon_m", recipe.moments == "f32" ? DType::f32 : DType::bf16}};
  }

  bool looks_beyond() const override { return true; }

  void update(const OptimizerRecipe& recipe, const UpdateStep& step,
              std::span<const KeptParameter> parameters, const StateParts* parts) const override {
    const auto momentum = static_cast<float>(recipe.momentum);
    const auto scale = static_cast<float>(step.factor);
    const auto direction = [&](std::size_t i) {
      const nn::Parameter& parameter = *parameters[i].parameter;
      const Tensor &gradient = parameter.grad, &kept = parameters[i].state[0];
      ops::scaled_sum(kept, momentum, kept, scale, gradient);
      const Tensor ahead({parameter.elements()}, parameter.split() ? DType::bf16 : DType::f32,
                         parameter.device());
      ops::scaled_sum(ahead, scale, gradient, momentum, kept);
      return ahead;
    };
    parts->each_whole(
        direction,
        [&](std::size_t /*i*/, const Tensor& whole) {
          return ops::orthogonalize(whole, static_cast<float>(recipe.eps));
        },
        [&](std::size_t i, const Tensor& orthogonal) {
          move(recipe, step, parameters[i], orthogonal);
        });
  }

  void draw_state(const OptimizerRecipe& /*recipe*/, const KeptParameter& kept, double size,
                  const Draw& draw) const override {
    const Tensor m = draw(" m");
    for (float& number : m.floats())
      number = static_cast<float>(size * number);
    copy(m.to(kept.state[0].dtype()).to(kept.state[0].device()), kept.state[0]);
  }

 private:
  static void move(const OptimizerRecipe& recipe, const UpdateStep& step, const KeptParameter& kept,
                   const Tensor& orthogonal) {
    const nn::Parameter& parameter = *kept.parameter;
    const Shape& whole = parameter.placement.global;
    const double longer = static_cast<double>(std::max(whole[0], whole[1]));
    const auto rate = static_cast<float>(step.learning_rate * kUpdateSize * std::sqrt(longer));
    const double decay = parameter.decay ? recipe.weight_decay : 0;
    const Tensor weights = parameter.read();
    ops::scaled_sum(weights, static_cast<float>(1 - step.learning_rate * decay), weights, -rate,
                    orthogonal);
    if (parameter.split()) parameter.write(weights);
    if (kept.average.defined())
      ops::scaled_sum(kept.average, step.average_decay, kept.average, 1 - step.average_decay,
                      weights);
  }
};

}  // namespace

const UpdateRule& muon_rule() {
  static const MuonRule rule;
  return rule;
}

}  // namespace vfm::train
