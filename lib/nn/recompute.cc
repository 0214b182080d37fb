// SPDX-License-Identifier: Apache-2.0
#include "nn/recompute.h"

namespace vfm::nn {

std::string_view recompute_name(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::elementwise:
      return "elementwise";
    case Recompute::block_but_attention:
      return "block_but_attention";
    case Recompute::block:
      break;
  }
  return "block";
}

ops::KeptOfBlock kept_of(Recompute recompute, bool offload) {
  const bool attention = recompute == Recompute::block_but_attention;
  return {attention, offload && (attention || recompute == Recompute::block)};
}

}  // namespace vfm::nn
