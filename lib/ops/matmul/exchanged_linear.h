// Linear layers with an exchange among ranks before or after the product. Where the exchange can be
// had in parts (ops/row_chunks.h), rows travel while others are multiplied, forward and in
// backward; the gradient of the weight is of all rows at once, as without parts.
//
// Where the product of a row does not depend on how many others are multiplied with it, results and
// gradients are those of the exchange as a whole, to the last bit. gemm_plain() is so; of oneDNN
// and cuBLASLt, which choose a kernel by the shape, another one may round otherwise. Every rank
// that takes part must run the same ones in the same order. Shape letters: S rows here, N rows of
// all ranks, I inputs, O outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/tape.h"

namespace vfm::ops {

/// linear(run_exchange(x, gather), w): x [S, I] to [N, O].
Tensor gathered_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& gather);

/// run_exchange(linear(x, w), sum), of dtype `out` as of linear: x [N, I] to [S, O]. In parts only
/// if that is x's.
Tensor summed_linear(Tape& tape, const Tensor& x, const LinearWeight& w, const Exchange& sum,
                     DType out);

}  // namespace vfm::ops
