// The kernel behind cross_entropy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

struct CrossEntropyArgs {
  std::int64_t tokens = 0, vocabulary = 0;
  float z_loss = 0, scale = 0;
  float* logits = nullptr;                // [S, V]; for scale other than 0 the gradient, out
  const std::int32_t* targets = nullptr;  // [S]
  float* losses = nullptr;                // [S] out
};

VFM_ISA_KERNEL(void, cross_entropy, const CrossEntropyArgs& args)

}  // namespace vfm::ops
