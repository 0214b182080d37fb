// What a model computes again in backward instead of keeping it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/tape.h"

namespace vfm::nn {

/// What backward recomputes instead of keeping it.
enum class Recompute {
  none,
  elementwise,  ///< the norms' and the activation's results: hardly any time, a third of the memory
  block_but_attention,  ///< as block, but what self-attention made is kept
  block,                ///< whole blocks, of which only what goes in is kept: a third more time
};
/// "none", "elementwise", "block_but_attention", "block".
std::string_view recompute_name(Recompute recompute);
/// What each block keeps; with `offload` what goes in waits in the host's memory.
ops::KeptOfBlock kept_of(Recompute recompute, bool offload);

}  // namespace vfm::nn
