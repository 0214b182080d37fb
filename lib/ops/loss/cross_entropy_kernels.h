// The kernels behind cross_entropy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

struct CrossEntropyArgs {
  std::int64_t tokens = 0, vocabulary = 0;  // vocabulary: of the share
  std::int64_t first = 0;                   // entry of the share's first column
  float z_loss = 0, scale = 0;
  float* logits = nullptr;                // [S, V]; for scale other than 0 the gradient, out
  const std::int32_t* targets = nullptr;  // [S]
  float* losses = nullptr;                // [S] out
  // A log-sum-exp and a target's logit, or 0, of each token, [S, 2]: of one share, and of all, one
  // after the other.
  float* part = nullptr;         // out
  const float* parts = nullptr;  // null: there is one share
  std::int64_t shares = 0;
};

/// Fills args.part; the rest is not read.
VFM_ISA_KERNEL(void, cross_entropy_part, const CrossEntropyArgs& args)
VFM_ISA_KERNEL(void, cross_entropy, const CrossEntropyArgs& args)

}  // namespace vfm::ops
