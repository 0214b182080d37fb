// RMSNorm over all heads of a token, as for queries and keys in Wan's transformer.
//
//   y = x / sqrt(sum(x^2) / D + eps) * weight    D: columns of all heads, on all ranks
//
// qk_norm_rope.h is the norm of each head alone. With tensor parallelism a rank has some of the
// heads, so sums over a token are added up over the ranks: of squares in the forward pass, of
// gradient times result in the backward pass.
//
// Each sum is computed in f32 in an order that depends only on this rank's sizes, and the exchange
// adds them in the order of the ranks (dist/group.h). Every rank therefore gets the same sum, and a
// run is repeated bit by bit. Another number of ranks adds the same f32 squares in another order:
// the sum differs by some 1e-7 of itself, which moves a result by a few units of the last place.
// Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
// Shape letters: S tokens, W width of a row, P parts of a row, C columns of a part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/exchange.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Queries alone are one part; queries and keys beside each other are two.
struct HeadsNorm {
  std::vector<Tensor> weights;  ///< [C] f32 of each part: this rank's, in the order of a row
  float epsilon = 1e-6f;
  int ranks = 1;  ///< that have C columns of each part each
  Exchange sum;   ///< maps [S, P] f32 to the sum over the ranks, and is its own adjoint
};

/// x is [S, W], f32 or bf16. Its first columns are the parts; columns behind them, such as values,
/// pass unchanged. Returns the same shape and dtype. With several ranks all must call it, and run
/// its backward pass, even without tokens. Throws Error for shapes and types that do not fit, and
/// for several ranks without an exchange.
Tensor heads_norm(Tape& tape, const Tensor& x, const HeadsNorm& norm);

}  // namespace vfm::ops
