// The forward pass of one batch in parts, for ranks that have some of the blocks of a network
// (pipeline parallelism). embed(), then blocks() over all of them, then head() are the whole pass.
//
// A list of tensors goes from part to part: the residual stream, [S, D] for this rank's S tokens of
// width D, and other tensors that later blocks read from earlier ones (skip connections). All are
// f32, with nothing pending. Positions, embedded noise levels and embedded texts, which all blocks
// read, are made by each rank for its own part. The gradients of their weights are summed over
// those ranks. Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ops/tape.h"
#include "tensor/tensor.h"

namespace vfm::nn {

/// The tensors that pass between two blocks; the residual stream is the first.
using Streams = std::vector<Tensor>;

/// The pass of one batch, recorded on a tape. The batch, the tape and the network must outlive this
/// object.
class StagedForward {
 public:
  virtual ~StagedForward() = default;
  /// Returns the embedded tokens.
  virtual Streams embed() = 0;
  /// Returns the tensors after the blocks [begin, end), from the tensors before them. If inputs of
  /// blocks are offloaded (set_recompute()), the caller must not keep `streams`.
  virtual Streams blocks(Streams streams, std::size_t begin, std::size_t end) = 0;
  /// Returns the network's output from the tensors after all blocks.
  virtual Tensor head(const Streams& streams) = 0;
};

/// Back-propagates from several results of one tape. gradients[i] is the gradient of results[i].
/// Results that want no gradient are left out. Clears the tape, unless no result wants a gradient.
inline void backward(ops::Tape& tape, const Streams& results, const Streams& gradients) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!tape.wants_grad(results[i])) continue;
    if (first)
      tape.accumulate(results[i], gradients[i]);
    else
      first = i;
  }
  if (first) tape.backward(results[*first], gradients[*first]);
}

}  // namespace vfm::nn
