// The residual stream of a network between two sub-layers.
// Shape letters: S tokens, D width, R samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/norm/modulate.h"

namespace vfm::nn {

/// The residual stream between two sub-layers: x + gate * branch, not yet added. The norm of the
/// next sub-layer adds the branch.
struct Stream {
  Tensor x;                      ///< [S, D] f32
  Tensor branch;                 ///< [S, D]; undefined if nothing is pending
  Tensor gates;                  ///< [R, ...]: the gates are D columns from `gate_column` on
  std::int64_t gate_column = 0;
  /// Tensors for later blocks, such as skip connections. A block takes tensors from the end, and
  /// adds tensors at the end.
  std::vector<Tensor> more = {};
};

/// Returns the input of a norm that adds what is pending in `stream`. `modulation` is undefined if
/// only the sum is wanted. The caller sets the norm's other fields.
inline ops::ModulateInput pending(const Stream& stream, const ops::RowMap& rows,
                                  const Tensor& modulation) {
  ops::ModulateInput input;
  input.x = stream.x;
  input.branch = stream.branch;
  input.gate = stream.gates;
  input.gate_column = stream.gate_column;
  input.modulation = modulation;
  input.rows = rows;
  return input;
}

}  // namespace vfm::nn
