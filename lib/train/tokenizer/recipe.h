// What a recipe says of training a tokenizer alone (vfm-recipe(5)): `tokenizer`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::train {

struct TokenizerRecipe {
  double l1 = 1;  ///< weight of the absolute error of pixels, which are in [-1, 1]
  double l2 = 0;  ///< of its square
};

}  // namespace vfm::train
