// SPDX-License-Identifier: Apache-2.0
#include "train/state/optimizer_kinds.h"

#include <algorithm>

#include "base/error.h"
#include "train/state/adamw_rules.h"
#include "train/state/muon_rule.h"

namespace vfm::train {
const UpdateRule& OptimizerKind::rule_of(const OptimizerRecipe& recipe,
                                         const nn::Parameter& parameter) const {
  for (const UpdateRule* rule : rules)
    if (rule->takes(recipe, parameter)) return *rule;
  fail("the optimizer '{}' has no rule for '{}'", name, parameter.name);
}

std::span<const OptimizerKind> optimizer_kinds() {
  static const std::vector<OptimizerKind> all = {
      {"adamw", false, {&block_adamw_rule(), &adamw_rule()}},
      {"muon", true, {&muon_rule(), &block_adamw_rule(), &adamw_rule()}}};
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
      bytes += static_cast<double>(tensor.elements(parameter->elements())) *
               static_cast<double>(dtype_size(tensor.dtype));
  return bytes;
}

}  // namespace vfm::train
