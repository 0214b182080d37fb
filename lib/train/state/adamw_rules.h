// AdamW (ops/optim/adamw.h), with moments of one type or in 8 bits.
//
// In 8 bits (ops/optim/block_codes.h) the moments of matrices and kernels are decoded for an
// update, some parameters at a time, and encoded again; the update itself has the moments before
// that rounding. Ranks that have parts of a parameter agree on the scales of its blocks. Vectors
// and tables, which are small and sensitive, keep moments of f32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/state/optimizer_kinds.h"

namespace vfm::train {

const UpdateRule& adamw_rule();
/// For parameters that have moments in 8 bits by the recipe.
const UpdateRule& block_adamw_rule();

}  // namespace vfm::train
