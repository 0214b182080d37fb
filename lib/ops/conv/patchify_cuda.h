// The CUDA versions behind patchify.h. The arguments have been checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/patchify.h"

namespace vfm::ops {

/// `tokens`: the shape of the result.
Tensor patchify_cuda(Tape& tape, const Tensor& latents, const std::vector<PatchGrid>& grids,
                     int channels, int zero_channels, std::array<int, 3> patch, Shape tokens,
                     DType out);
/// `elements`: of the result.
Tensor unpatchify_cuda(Tape& tape, const Tensor& tokens, const std::vector<PatchGrid>& grids,
                       int channels, std::array<int, 3> patch, std::int64_t elements);

}  // namespace vfm::ops
