// The section `tokenizer` of a recipe (vfm-recipe(5)), which only training of a tokenizer has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::train {

struct TokenizerRecipe {
  double l1 = 1;  ///< weight of the absolute error of pixels, which are in [-1, 1]
  double l2 = 0;  ///< weight of the squared error of pixels
};

}  // namespace vfm::train
