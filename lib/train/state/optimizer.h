// The optimizer over all parameters of a model, with a running average of the weights.
//
// What it keeps for a parameter and how it updates weights is stated in
// train/state/optimizer_kinds.h. This state is on the parameters' device; the average is there,
// too, or in the host's memory. An average that the host keeps of weights on a GPU is updated
// asynchronously (tensor/download.h); it is done before the next update. Thread-safety: one thread
// at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameter.h"
#include "tensor/download.h"
#include "train/recipe/recipe.h"
#include "train/state/optimizer_kinds.h"

namespace vfm::train {

/// Weight of the old average at update n (1 is the first).
///   "decay": min(decay, (1+n)/(10+n)), so that the first weights are soon forgotten
///   "power": (1 - 1/n)^(gamma+1), gamma from `length` s: the largest root of
///            gamma^3 + 7 gamma^2 + (16 - s^-2) gamma + 12 - s^-2 = 0
/// Source of "power": Karras et al., "Analyzing and improving the training dynamics of diffusion
/// models" (CVPR 2024), appendix C.
double ema_beta(const EmaRecipe& recipe, std::int64_t n);
/// The gamma of "power" for a relative standard deviation s.
double power_ema_gamma(double s);

/// The tensors of one name that an optimizer keeps.
struct OptimizerState {
  std::string name;  ///< of its files in a checkpoint
  DType dtype = DType::f32;
  nn::ParameterList parameters;  ///< those that have such a tensor
  std::vector<Tensor> tensors;   ///< for each of them, on its device
};

class Optimizer {
 public:
  /// The state begins with zeros, the average with the parameters' values. `parameters` must
  /// outlive this object. Without a mesh this rank has them whole. A collective.
  Optimizer(const OptimizerRecipe& optimizer, const EmaRecipe& ema,
            const nn::ParameterList& parameters, const dist::Mesh* mesh = nullptr);

  /// Updates with the gradients times `factor`, clipped as the recipe says. Returns their global
  /// norm before clipping; if it is not finite, nothing is changed. Waits for the device. If
  /// parameters are parts of tensors, `squares` must be squares_of_gradients()
  /// (train/step/gradients.h). A collective if a rule is.
  double update(double lr, double factor, std::optional<double> squares = {});

  /// The sum of squares of this rank's gradients.
  double squares() const;

  /// Continues with the rates and limits of another recipe. What is kept stays.
  void follow(const OptimizerRecipe& recipe) { recipe_ = recipe; }

  bool has_ema() const { return ema_recipe_.mode != "off"; }
  /// Restarts the average with the parameters' values; call it after these were overwritten.
  void restart_ema();
  /// Exchanges the average with the parameters' values; a second call undoes it.
  void swap_ema();

  /// Calls `act` once, before the weights, their state or the average change the next time.
  void before_change(std::function<void()> act) const { before_change_ = std::move(act); }

  const nn::ParameterList& parameters() const { return parameters_; }

  /// The average in f32, on the parameters' device or on the host; empty if there is none. Waits
  /// for the last update of the average, and throws what that threw.
  const std::vector<Tensor>& ema() const;

  const std::vector<OptimizerState>& state() const { return state_; }
  /// The state of that name. Throws Error if there is none.
  const OptimizerState& state(std::string_view name) const;
  /// UpdateRule::draw_state() for parameter i.
  void draw_state(std::size_t i, double size, const UpdateRule::Draw& draw);

  std::int64_t updates = 0;  ///< updates so far, without skipped steps

 private:
  Device device() const { return parameters_.front()->device(); }
  bool ema_on_host() const { return ema_recipe_.place == "host" && device() != Device::cpu; }
  double ema_decay(std::int64_t last) const;
  void average_on_host(float decay);
  void begin_change();
  nn::Parameter& add_blocks(const nn::Parameter& of, const StateTensor& tensor);
  double update_all(const UpdateStep& step, std::optional<double> squares);

  /// The parameters that have a rule.
  struct Ruled {
    const UpdateRule* rule;
    std::vector<std::size_t> numbers;  // of the parameters
    std::vector<KeptParameter> kept;   // for each of them
    std::optional<StateParts> parts;   // for a rule that looks beyond an element
  };
  OptimizerRecipe recipe_;
  EmaRecipe ema_recipe_;
  const nn::ParameterList& parameters_;
  std::deque<nn::Parameter> blocks_;  // names and places of tensors of blocks
  std::vector<Ruled> ruled_;
  std::vector<OptimizerState> state_;
  std::vector<Tensor> ema_;
  mutable std::function<void()> before_change_;
  mutable Download download_;  // of weights, for an average on the host; uses the other members
};

}  // namespace vfm::train
