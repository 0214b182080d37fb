// SPDX-License-Identifier: Apache-2.0
#include "train/recipe.h"

namespace vfm::train {

DType Recipe::compute() const {
  return model.compute == "bf16" ? DType::bf16 : DType::f32;
}

data::Patch ModelRecipe::patch() const {
  if (autoregressive()) return {1, 1, 1};
  return {dit.patch_size[0], dit.patch_size[1], dit.patch_size[2]};
}

DType OptimizerRecipe::moment_type() const {
  return moments == "bf16" ? DType::bf16 : DType::f32;
}

}  // namespace vfm::train
