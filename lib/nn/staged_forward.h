// The forward pass of one batch in parts, which ranks with some of the blocks call each for itself
// (pipeline parallelism): embed(), blocks() over all of them, head() is forward() (network.h).
//
// From part to part only the residual stream passes: f32 [S, D], of this rank's S tokens of width
// D, with nothing pending. What all blocks read besides, positions and the embedded noise levels,
// each rank makes for its own part; its weights' gradients are the sums over those ranks.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tensor/tensor.h"

namespace vfm::nn {

/// Of a batch and a tape, which it records on; both, and the network, must outlive it. The tape
/// goes back through what was called here: with x watched, to the gradient of x.
class StagedForward {
 public:
  virtual ~StagedForward() = default;
  /// The embedded tokens.
  virtual Tensor embed() = 0;
  /// x after the blocks [begin, end). Where what goes into blocks waits in the host's memory
  /// (set_recompute()), the caller lets go of x.
  virtual Tensor blocks(Tensor x, std::size_t begin, std::size_t end) = 0;
  /// The network's output, of x after all blocks.
  virtual Tensor head(const Tensor& x) = 0;
};

}  // namespace vfm::nn
