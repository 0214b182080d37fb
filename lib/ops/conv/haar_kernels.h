// The kernels behind haar.h; f32 throughout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// bands [t, h, w, C p^3] = split(pixels), each level scaled. With `start` the first frame stands
/// for p; with `last_only` for the last of them alone, the others being zeros.
VFM_KERNEL(void, haar_split, const Tensor& pixels, const Tensor& bands, int patch, bool start,
           float scale, bool last_only)
/// pixels = merge(bands), the transpose: of the first p frames the last alone, or their sum.
VFM_KERNEL(void, haar_merge, const Tensor& bands, const Tensor& pixels, int patch, bool start,
           float scale, bool last_only)

}  // namespace vfm::ops
