// A network's blocks one after the other: what enters and leaves each, what backward recomputes, and
// the pass in parts (nn/staged_forward.h). Written once for all networks.
//
// A network gives a Block and a Context, what all its blocks read. A Context can be copied: a block
// that backward recomputes keeps a copy. Shape letters: S tokens, D width, R samples.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "nn/block_weights.h"
#include "nn/recompute.h"
#include "nn/staged_forward.h"
#include "ops/norm/modulate.h"

namespace vfm::nn {

/// The residual stream between two sub-layers: x + gate * branch, not yet added. The norm of the
/// next sub-layer adds it in passing.
struct Stream {
  Tensor x;                      ///< [S, D] f32
  Tensor branch;                 ///< [S, D]; undefined if nothing is pending
  Tensor gates;                  ///< [R, ...]: the gates are D columns from `gate_column` on
  std::int64_t gate_column = 0;
};

/// Returns the input of a norm that adds what is pending in `stream`. `modulation` is undefined if
/// nothing but the sum is asked for. The caller sets the norm's other fields.
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

/// The blocks of a network, and how they are run. All must outlive this.
template <class Block>
struct Stack {
  const std::deque<Block>& blocks;
  const BlockWeights& weights;
  Recompute recompute = Recompute::none;
  bool offload = false;
};

/// The forward pass of one batch. A Block has
///   Stream forward(ops::Tape&, const Stream&, const Context&) const
///   Tensor merge(ops::Tape&, const Stream&, const Context&) const   the stream, nothing pending
/// A network derives from it, fills `context_` and `read_`, and adds embed() and finish().
template <class Block, class Context>
class StackForward : public StagedForward {
 public:
  Tensor blocks(Tensor x, std::size_t begin, std::size_t end) override {
    const Stream after = run({std::move(x)}, begin, end);
    return after.branch.defined() ? stack_.blocks[begin].merge(tape_, after, context_) : after.x;
  }
  Tensor head(const Tensor& x) override { return finish({x}); }
  /// The whole pass.
  Tensor forward() { return finish(run({embed()}, 0, stack_.blocks.size())); }

 protected:
  StackForward(const Stack<Block>& stack, ops::Tape& tape) : tape_(tape), stack_(stack) {}
  /// The network's output, from the stream after all blocks.
  virtual Tensor finish(const Stream& stream) = 0;

  ops::Tape& tape_;
  Context context_;
  std::vector<Tensor> read_;  ///< tensors of `context_` that are no weights and want a gradient

 private:
  Stream run(Stream stream, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Block& block = stack_.blocks[i];
      stack_.weights.enter(tape_, i);
      if (stack_.recompute < Recompute::block_but_attention) {
        stream = block.forward(tape_, stream, context_);
        continue;
      }
      // Between blocks the sum alone is kept.
      const auto again = [&block, context = context_](ops::Tape& inner, const Tensor& x) {
        const Stream after = block.forward(inner, Stream{x}, context);
        return std::vector{after.branch.defined() ? block.merge(inner, after, context) : after.x};
      };
      stream.x = tape_.checkpoint(stream.x, read_, again,
                                  kept_of(stack_.recompute, stack_.offload))[0];
    }
    if (end == stack_.blocks.size()) stack_.weights.leave(tape_);
    return stream;
  }

  const Stack<Block> stack_;
};

}  // namespace vfm::nn
