// A tensor in FP8 of which several ranks have parts: with the scale that one rank would give all of
// it.
//
// The ranks exchange the largest magnitude of their parts, 4 bytes each, so what goes through a
// matrix in FP8 is rounded as on one rank, whatever is cut. Ranks that have the same part make no
// difference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/group.h"
#include "ops/matmul/quantize.h"

namespace vfm::nn {

/// ops::quantize() of this rank's part; without ranks, x is all there is. A collective.
ops::Quantized quantize_together(const Tensor& x, dist::Group* ranks);

}  // namespace vfm::nn
