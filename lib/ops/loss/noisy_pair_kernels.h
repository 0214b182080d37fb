// The kernel behind noisy_pair.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/loss/noisy_pair.h"

namespace vfm::ops {

/// Writes the tensors of `out`.
VFM_KERNEL(void, noisy_pair, const Tensor& x0, std::span<const NoisySample> samples,
           const NoisyPair& out)

}  // namespace vfm::ops
