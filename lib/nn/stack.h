// Runs a network's blocks one after the other, for all networks: gathers each block's weights, has
// backward recompute blocks, and can run the pass in parts (nn/staged_forward.h).
//
// A network defines a Block, and a Context, which has what all its blocks read. A Context can be
// copied: a block that backward recomputes keeps a copy.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "nn/block_weights.h"
#include "nn/recompute.h"
#include "nn/staged_forward.h"
#include "nn/stream.h"

namespace vfm::nn {

/// The blocks of a network, and how to run them. The blocks and weights must outlive this object.
template <class Block>
struct Stack {
  const std::deque<Block>& blocks;
  const BlockWeights& weights;
  Recompute recompute = Recompute::none;
  bool offload = false;
};

/// The forward pass of one batch. A Block has
///   Stream forward(ops::Tape&, Stream, const Context&) const
/// A network derives a class from this, fills `context_` and `read_`, and adds start() and
/// finish().
template <class Block, class Context>
class StackForward : public StagedForward {
 public:
  Streams embed() override { return {start()}; }
  Streams blocks(Streams streams, std::size_t begin, std::size_t end) override {
    const Stream after = run(as_stream(std::move(streams)), begin, end);
    return as_streams(after.sum(tape_), after);
  }
  Tensor head(const Streams& streams) override { return finish(as_stream(streams)); }
  /// Runs the whole pass.
  Tensor forward() { return finish(run(Stream{start()}, 0, stack_.blocks.size())); }

 protected:
  StackForward(const Stack<Block>& stack, ops::Tape& tape) : tape_(tape), stack_(stack) {}
  /// Returns the residual stream before the first block.
  virtual Tensor start() = 0;
  /// Returns the network's output from the stream after all blocks.
  virtual Tensor finish(const Stream& stream) = 0;

  ops::Tape& tape_;
  Context context_;
  std::vector<Tensor> read_;  ///< tensors of `context_` that want a gradient and are not weights

 private:
  static Stream as_stream(Streams streams) {
    Stream stream{std::move(streams.front())};
    stream.more.assign(std::next(streams.begin()), streams.end());
    return stream;
  }
  static Streams as_streams(const Tensor& x, const Stream& stream) {
    Streams all{x};
    all.insert(all.end(), stream.more.begin(), stream.more.end());
    return all;
  }

  Stream run(Stream stream, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Block& block = stack_.blocks[i];
      stack_.weights.enter(tape_, i);
      if (stack_.recompute < Recompute::block_but_attention) {
        stream = block.forward(tape_, stream, context_);
        continue;
      }
      stream = recomputed(block, stream);
    }
    if (end == stack_.blocks.size()) stack_.weights.leave(tape_);
    return stream;
  }

  // Returns the index of the tensor with the same memory; all.size() if there is none.
  static std::size_t place_of(const Tensor& one, const std::vector<Tensor>& all) {
    return static_cast<std::size_t>(std::ranges::find(all, one.id(), &Tensor::id) - all.begin());
  }

  // Between blocks only the sum is kept, and the tensors that later blocks read. A recomputed block
  // returns each tensor that it makes once, and none of its inputs. `places` says where the tensors
  // of `more` are, which may be inputs or appear twice.
  Stream recomputed(const Block& block, const Stream& in) {
    std::vector<Tensor> read = read_;
    read.insert(read.end(), in.more.begin(), in.more.end());
    // For each tensor of out.more: its index in in.more; beyond in.more.size(), its index in
    // `made`.
    const auto places = std::make_shared<std::vector<std::size_t>>();
    const auto again = [&block, places, context = context_, more = in.more](ops::Tape& inner,
                                                                            const Tensor& x) {
      const Stream after = block.forward(inner, Stream{.x = x, .more = more}, context);
      Streams made{after.sum(inner)};
      places->clear();
      for (const Tensor& one : after.more) {
        std::size_t place = place_of(one, more);
        if (place == more.size()) {
          const std::size_t there = place_of(one, made);
          if (there == made.size()) made.push_back(one);
          place += there;
        }
        places->push_back(place);
      }
      return made;
    };
    ops::KeptOfBlock kept = kept_of(stack_.recompute, stack_.offload);
    // An input that later blocks read too stays in memory for them.
    if (place_of(in.x, in.more) < in.more.size()) kept.offload = false;
    const Streams made = tape_.checkpoint(in.x, read, again, kept);
    Stream out{made.front()};
    for (const std::size_t place : *places)
      out.more.push_back(place < in.more.size() ? in.more[place] : made[place - in.more.size()]);
    return out;
  }

  const Stack<Block> stack_;
};

}  // namespace vfm::nn
