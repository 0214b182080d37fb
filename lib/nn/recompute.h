// Choices of the tensors that backward recomputes, so that forward need not keep them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/tape.h"

namespace vfm::nn {

/// The part of a block that backward recomputes.
enum class Recompute {
  none,
  elementwise,  ///< results of norms and activations: hardly any time, a third of the memory
  block_but_attention,  ///< like block, but results of self-attention are kept
  block,                ///< whole blocks, which keep only their inputs: a third more time
};
/// "none", "elementwise", "block_but_attention", "block".
std::string_view recompute_name(Recompute recompute);
/// Returns what each block keeps. With `offload` the inputs of blocks wait in the host's memory.
ops::KeptOfBlock kept_of(Recompute recompute, bool offload);

}  // namespace vfm::nn
