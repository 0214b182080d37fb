// The kernels of the losses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/loss/noisy_pair.h"
#include "ops/loss/pixel_error.h"
#include "ops/loss/squared_error.h"

namespace vfm::ops {

// The kernels behind cross_entropy.h.

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

// The kernel behind noisy_pair.h.

/// Writes the tensors of `out`.
VFM_KERNEL(void, noisy_pair, const Tensor& x0, std::span<const NoisySample> samples,
           const NoisyPair& out)

// The kernel behind pixel_error.h.

/// Writes out.sums, and out.seed unless scale is 0.
VFM_KERNEL(void, pixel_error, const Tensor& output, const Tensor& target,
           const PixelWeights& weights, double scale, const PixelError& out)

// The kernel behind squared_error.h.

/// Writes out.sums, and out.seed unless scale is 0.
VFM_KERNEL(void, squared_error, const Tensor& output, const Tensor& target,
           std::span<const ErrorSample> samples, double scale, const SquaredError& out)

}  // namespace vfm::ops
