// The CUDA version behind noisy_pair.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/loss/noisy_pair.h"

namespace vfm::ops {

void noisy_pair_cuda(const Tensor& x0, std::span<const NoisySample> samples, const NoisyPair& out);

}  // namespace vfm::ops
