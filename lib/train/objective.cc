// SPDX-License-Identifier: Apache-2.0
#include "train/objective.h"

#include "train/codes/objective.h"
#include "train/diffusion/objective.h"
#include "train/tokenizer/objective.h"

namespace vfm::train {

const nn::ParameterList& Objective::frozen() const {
  static const nn::ParameterList none;
  return none;
}

std::vector<float> Objective::reconstruct(const CleanSample& /*sample*/) const {
  return {};
}

std::unique_ptr<Objective> make_objective(const Recipe& recipe, models::Recompute recompute,
                                          Device device) {
  if (recipe.model.autoregressive())
    return std::make_unique<CodeObjective>(recipe, recompute, device);
  if (recipe.model.tokenizer())
    return std::make_unique<TokenizerObjective>(recipe, recompute, device);
  return std::make_unique<DiffusionObjective>(recipe, recompute, device);
}

}  // namespace vfm::train
