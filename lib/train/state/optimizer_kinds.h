// The optimizers that a recipe can choose, each stated once: what it keeps for a parameter, and how
// it updates weights with that.
//
// Everything else follows from these values: the files of a checkpoint, how ranks share the state
// ('parallel.shard'), and on Device::meta a run's memory and work. To add an optimizer, write its
// rules and add a line to optimizer_kinds().
// Thread-safety: rules have no state; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nn/parameter.h"
#include "tensor/tensor.h"
#include "train/recipe/recipe.h"
#include "train/state/state_parts.h"

namespace vfm::train {

/// A tensor that an optimizer keeps for a parameter. It begins with zeros.
struct StateTensor {
  std::string_view name;  ///< of its files in a checkpoint: "adam_m"
  DType dtype = DType::f32;
  /// 1: it has the parameter's shape, and a rank has the part that it has of the parameter. Else it
  /// has an element for each block of `block` elements of the whole parameter, in C order, and
  /// every rank of the stage has all of it.
  std::int64_t block = 1;

  std::int64_t elements(std::int64_t of_parameter) const {
    return (of_parameter + block - 1) / block;
  }
};

/// A parameter, or the stretch whose state this rank has, and what is kept for it.
struct KeptParameter {
  const nn::Parameter* parameter = nullptr;
  std::vector<Tensor> state;  ///< in the order of UpdateRule::state(), on the parameter's device
  Tensor average;             ///< f32; undefined: no average changes in this update
};

struct UpdateStep {
  double learning_rate = 0;
  double factor = 1;        ///< on gradients
  float average_decay = 0;  ///< weight of the old average
  std::int64_t number = 1;  ///< of this update, from 1
};

/// How an optimizer updates some of the parameters.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Whether the rule is for this parameter.
  virtual bool takes(const OptimizerRecipe& recipe, const nn::Parameter& parameter) const = 0;
  virtual std::vector<StateTensor> state(const OptimizerRecipe& recipe) const = 0;
  /// True if an element's update depends on other elements of its parameter, which other ranks may
  /// have. Otherwise each element is updated by itself.
  virtual bool looks_beyond() const { return false; }
  /// Updates weights, state and averages. `parts` knows what other ranks have of these parameters;
  /// null unless looks_beyond(), and then this is a collective of these ranks.
  virtual void update(const OptimizerRecipe& recipe, const UpdateStep& step,
                      std::span<const KeptParameter> parameters, const StateParts* parts) const = 0;
  /// The same for all parameters of a model in one kernel, which also finds the norm of step.factor
  /// * gradients and clips it as the recipe says. Returns that norm; if it is not finite, nothing
  /// is changed. Returns nothing, and does nothing, if the rule has no such kernel.
  virtual std::optional<double> clipped_update(
      const OptimizerRecipe& /*recipe*/, const UpdateStep& /*step*/,
      std::span<const KeptParameter> /*parameters*/) const {
    return {};
  }

  /// Returns numbers of the normal distribution for each element of a parameter, f32 on the host;
  /// others for another `what`.
  using Draw = std::function<Tensor(std::string_view what)>;
  /// For the check of a layout: sets a state at random, such as gradients of that root mean square
  /// would leave it.
  virtual void draw_state(const OptimizerRecipe& recipe, const KeptParameter& kept, double size,
                          const Draw& draw) const = 0;
};

struct OptimizerKind {
  std::string_view name;
  bool for_hidden = false;               ///< only for models with nn::Parameter::hidden
  std::vector<const UpdateRule*> rules;  ///< a parameter has the first rule that takes it

  const UpdateRule& rule_of(const OptimizerRecipe& recipe, const nn::Parameter& parameter) const;
};

/// All optimizers, as 'optimizer.kind' names them.
std::span<const OptimizerKind> optimizer_kinds();
const OptimizerKind& optimizer_kind(const OptimizerRecipe& recipe);

/// Bytes of the state that `recipe` keeps for whole parameters like these.
double state_bytes(const OptimizerRecipe& recipe, const nn::ParameterList& parameters);

}  // namespace vfm::train
