// Linear layers with an exchange among ranks before or after the product. If the exchange has
// chunks (ops/row_chunks.h), rows travel while others are multiplied, in the forward and in the
// backward pass. The gradient of the weight is always computed from all rows at once.
//
// With and without chunks, results and gradients are the same to the last bit if the product of a
// row does not depend on how many rows are multiplied with it. This holds for gemm_plain(). oneDNN
// and cuBLASLt choose a kernel by the shape, and kernels may round differently. Every rank must run
// the same of these layers in the same order. A bias is added to the result, after the exchange:
// ops/matmul/bias.h says what its gradient is. Shape letters: S rows of this rank, N rows of all
// ranks, I inputs, O outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Returns linear(run_exchange(x, gather), w), [N, O], for x [S, I].
Tensor gathered_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& gather);

/// Returns run_exchange(linear(x, w), sum), [S, O] of dtype `out`, for x [N, I]. Uses the chunks of
/// `sum` only if `out` is x's dtype.
Tensor summed_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& sum,
                     DType out);

}  // namespace vfm::ops
