// The residual stream of a network between two sub-layers. A block reads:
//
//   x.add(attention.forward(tape, norm1.of(tape, x, conditions), pass));
//   x.add(mlp.forward(tape, norm2.of(tape, x, conditions), pass));
//
// add() adds nothing yet: the next norm does, in the same pass over memory (nn/norm.h).
// Shape letters: S tokens, D width, R rows of modulations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ops/norm/modulate.h"

namespace vfm::nn {

/// The stream is x + gate * branch + extra, not yet added.
struct Stream {
  /// [S, D] f32. A block that reads or changes `x` itself, as when it adds it to `more`, calls
  /// settle() first.
  Tensor x;
  Tensor branch;  ///< [S, D]; undefined if nothing is pending
  /// [R, ...]: the gates of the branch are D columns from `gate_column` on. Undefined: it has none.
  /// A norm leaves the gates of the branch to come here.
  Tensor gates = {};
  std::int64_t gate_column = 0;
  ops::RowMap rows = {};  ///< row of `gates` of each token
  Tensor extra = {};      ///< [S, D] f32, or undefined
  /// Tensors for later blocks, such as skip connections. A block takes tensors from the end, and
  /// adds tensors at the end.
  std::vector<Tensor> more = {};

  /// Lets `made` be the branch. Throws Error if one is pending.
  void add(Tensor made);
  /// Returns the stream with all that is pending added; `x` itself if nothing is.
  Tensor sum(ops::Tape& tape) const;
  /// Sets `x` to sum(). Then nothing is pending, and the branch to come has no gates.
  void settle(ops::Tape& tape);
  /// What is pending, as the input of a norm, which sets the other fields. `ones` [R, D] are the
  /// gates of a branch that has none.
  ops::ModulateInput pending(const ops::RowMap& of_tokens, const Tensor& ones) const;
};

}  // namespace vfm::nn
