// Communication among ranks as ops see it: a linear map of tensors whose parts are on several
// ranks, and its adjoint. Ops do not know ranks: nn/collectives.h makes exchanges for a group of
// ranks.
//
// The backward pass runs the adjoint: an all-gather turns into a reduce-scatter, an all-to-all into
// the inverse all-to-all. Nothing is scaled. Every rank of a group must run the same exchanges in
// the same order, in the forward and in the backward pass. An exchange is therefore recorded even
// if this rank has no rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "ops/tape.h"

namespace vfm::ops {

class RowChunks;

struct Exchange {
  /// Both return a new tensor. `adjoint` maps a gradient of the shape that `forward` returns to one
  /// of the shape that `forward` takes.
  std::function<Tensor(const Tensor&)> forward, adjoint;
  /// The exchange in parts (ops/row_chunks.h), for products (ops/matmul/exchanged_linear.h). Either
  /// gather() or sum() is `forward`, the other one `adjoint`. Null if the exchange runs only as a
  /// whole.
  std::shared_ptr<const RowChunks> chunks = nullptr;
  /// False if there is nothing to exchange; tensors then pass unchanged.
  explicit operator bool() const { return static_cast<bool>(forward); }
};

/// Returns `first` followed by `second`; either may be empty.
Exchange in_turn(const Exchange& first, const Exchange& second);
/// Returns the exchange with `forward` and `adjoint` swapped.
Exchange adjoint_of(const Exchange& exchange);

/// Returns forward(x), or x itself if there is nothing to exchange. The gradient has x's dtype.
Tensor run_exchange(Tape& tape, const Tensor& x, const Exchange& exchange);

}  // namespace vfm::ops
