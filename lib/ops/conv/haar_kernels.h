// The kernels behind haar.h; f32 throughout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// bands [t, h, w, C p^3] = split(pixels), each level multiplied by `scale`. With `start` the first
/// frame counts as p equal frames; with `last_only` too, it is the last of p frames and the others
/// are zero.
VFM_KERNEL(void, haar_split, const Tensor& pixels, const Tensor& bands, int patch, bool start,
           float scale, bool last_only)
/// pixels = merge(bands), the transpose of haar_split. With `start` the first p frames become their
/// sum, or with `last_only` the last of them.
VFM_KERNEL(void, haar_merge, const Tensor& bands, const Tensor& pixels, int patch, bool start,
           float scale, bool last_only)

}  // namespace vfm::ops
