// What several ranks make of tensors that each has a part of, as ops see it: a linear map and its
// adjoint. Ops know no ranks: nn/collectives.h makes these of a group of them.
//
// The gradient of what all_gather made is reduce-scattered, that of an all-to-all goes back by its
// inverse, and so on; nothing is scaled. Every rank of a group runs the same ones in the same
// order, forward, and again backward: an exchange is recorded whether or not this rank has rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "ops/tape.h"

namespace vfm::ops {

class RowChunks;

struct Exchange {
  /// Both give a tensor of their own. `adjoint` takes a gradient of the shape that `forward` gives,
  /// and gives one of the shape that it takes.
  std::function<Tensor(const Tensor&)> forward, adjoint;
  /// The same in parts (ops/row_chunks.h), for products (ops/matmul/exchanged_linear.h); null: only
  /// as a whole. `forward` is its gather() or its sum(), `adjoint` the other one.
  std::shared_ptr<const RowChunks> chunks = nullptr;
  /// Whether there is anything to exchange: else tensors pass as they are.
  explicit operator bool() const { return static_cast<bool>(forward); }
};

/// What one makes and then the other; either may be none.
Exchange in_turn(const Exchange& first, const Exchange& second);
/// The adjoint, whose adjoint is the exchange.
Exchange adjoint_of(const Exchange& exchange);

/// forward(x); x itself if there is nothing to exchange. The gradient is of x's dtype.
Tensor run_exchange(Tape& tape, const Tensor& x, const Exchange& exchange);

}  // namespace vfm::ops
