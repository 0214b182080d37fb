// Quantises a tensor to FP8 of which several ranks have parts, with the scale that one rank would
// give the whole tensor.
//
// The ranks exchange the largest magnitude of their parts, 4 bytes each. So a matrix product in FP8
// rounds its input as on one rank, however the input is cut. Several ranks may have the same part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/group.h"
#include "ops/matmul/quantize.h"

namespace vfm::nn {

/// ops::quantize() of this rank's part, x. `ranks` null: x is the whole tensor. A collective.
ops::Quantized quantize_together(const Tensor& x, dist::Group* ranks);

}  // namespace vfm::nn
