// The kernels behind cross_entropy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

struct CrossEntropyArgs {
  std::int64_t tokens = 0, vocabulary = 0;  // vocabulary: columns of the share
  std::int64_t first = 0;                   // entry of the share's first column
  float z_loss = 0, scale = 0;
  float* logits = nullptr;                // [S, V]; overwritten by the gradient unless scale is 0
  const std::int32_t* targets = nullptr;  // [S]
  float* losses = nullptr;                // [S] out
  // [S, 2]: log-sum-exp and target's logit (0 if absent) of each token. `part` is of one share,
  // `parts` has all shares one after the other.
  float* part = nullptr;         // out
  const float* parts = nullptr;  // null if there is one share
  std::int64_t shares = 0;
};

/// Writes args.part from logits and targets; other fields are not used.
VFM_ISA_KERNEL(void, cross_entropy_part, const CrossEntropyArgs& args)
VFM_ISA_KERNEL(void, cross_entropy, const CrossEntropyArgs& args)

}  // namespace vfm::ops
