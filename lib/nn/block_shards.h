// Matrices of which each rank keeps a part, gathered block by block ('parallel.shard' full).
//
// Between uses a rank keeps its own stretch of each matrix of a block. The matrices are gathered
// before the block runs, while those of the next block begin to travel, and are freed after it. So
// at most two blocks are gathered at a time. Backward gathers them again from the last block on,
// whose matrices travel while the loss is computed. While backward is in a block, the gradients of
// its matrices have buffers of their own. Then they are summed to the ranks that keep the
// stretches, while backward goes on. Products know such a matrix by a name (ops::MatrixSource), so
// every mode of recomputation asks for it when needed.
//
// Every rank of a group gathers and sums the same blocks in the same order. A rank without samples
// for a pass takes part with an empty pass (fill()). In a pipeline the ranks of a group run blocks
// of different microbatches, each in another order. There all blocks of a stage are gathered once a
// step, before the first runs, and gradients are summed over the microbatches in buffers as large
// as the matrices. Sums to the stretches start once backward of the last microbatch has left the
// block, always in the order from the last block to the first. A rank that is ahead does not wait
// before finish().
//
// Several networks of a step each have an object of their own on the same groups (another()). Their
// exchanges must start in one order on all ranks, and they do:
// - An object starts exchanges only where a pass of its network enters or leaves a block. Which
//   ones start follows from the block, and from what is gathered already.
// - So the order of the passes decides the order of the exchanges. The step announces the passes of
//   a batch, and checks each before it exchanges anything (tell(), passing()). A rank without
//   samples makes the announced passes (fill()).
// - With at_once, forward starts none, and during backward the sums of one network alone start.
//   Those of the others start in finish().
// Sources: Rajbhandari et al., "ZeRO" (2020); Zhao et al., "PyTorch FSDP" (2023).
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dist/group.h"
#include "nn/sharded_matrix.h"
#include "ops/tape.h"
#include "tensor/tensor.h"

namespace vfm::nn {

class BlockShards {
 public:
  /// A pass through all blocks: forward, forward that is recorded for backward, and backward.
  enum class Way { forward, recorded, backward };
  struct Options {
    bool keep = false;          ///< gathered matrices stay until drop()
    DType travel = DType::f32;  ///< type in which gradients are sent: f32 or bf16
    /// Gathered matrices stay: gather_all() gathers all blocks; gradients are summed once a step.
    bool at_once = false;
  };
  /// `whole`: ranks with the same uncut weights. `cut`: ranks with the same part of weights cut
  /// along tp. `replicas`: ranks with the same stretches; null: none. All must outlive this object.
  BlockShards(dist::Group& whole, dist::Group& cut, dist::Group* replicas, Options options);

  /// The same for another network on the same ranks. With at_once, finish() must be called for this
  /// object before any that it made.
  std::unique_ptr<BlockShards> another() const;
  /// Without at_once, `told` is called when a pass begins, before its first exchange. Empty: none.
  void tell(std::function<void(Way)> told) { told_ = std::move(told); }
  bool passing() const { return passing_; }  ///< a pass has begun and not ended

  dist::Group& group(bool whole) const { return whole ? whole_ : cut_; }
  /// Sets the matrices of each block, in order. They must outlive all use before the next call.
  void set_blocks(std::vector<std::vector<ShardedMatrix*>> blocks);

  /// With at_once, begins to gather what is not gathered. If backward follows, also lends the
  /// gradients buffers of zeros until they are summed. Otherwise does nothing.
  void gather_all(bool backward_follows);
  /// With at_once: `last` says that the next backward is the last one to add to the gradients of
  /// the blocks that it passes.
  void last_backward(bool last) { last_ = last; }
  /// With at_once, starts and ends sums over ranks, as far as possible without waiting.
  void go_on();
  /// Call it before block `i` runs; i = number of blocks: after the last. In backward the tape does
  /// the reverse.
  void enter(ops::Tape& tape, std::size_t i);
  /// Takes part in a pass for which this rank has no samples. `first`: the gradients of this
  /// backward replace those of the step before.
  void fill(Way way, bool first = false);
  /// Waits for all transfers. Afterwards the stretches have the gradients of the step.
  void finish();
  /// Frees gathered matrices: after the stretches have changed, or to save memory.
  void drop();

  /// Calls `look` for each matrix: `all` is the gathered matrix, gathered now if need be.
  /// `current`: this rank's stretch of it equals own(). A collective.
  using Look = std::function<void(const ShardedMatrix&, const Tensor& all, bool current)>;
  void look_at_all(const Look& look);
  /// The largest number of blocks gathered at a time.
  int most_gathered() const { return most_gathered_; }

 private:
  struct Block {
    std::vector<ShardedMatrix*> matrices;
    std::vector<dist::Transfer> gathering;
    bool here = false;
    bool final = false;  // with at_once: its gradients are final
  };
  /// A sum of a gradient in progress.
  struct Sum {
    std::size_t block = 0;
    ShardedMatrix* matrix = nullptr;
    Tensor buffer, own;
    dist::Transfer transfer;
    bool first = false;  ///< replaces the gradient instead of adding to it
  };
  void begin(Way way);
  void forward(std::size_t i, bool recorded);
  void backward(ops::Tape* tape, std::size_t i, bool first);
  void start(std::size_t i);
  void need(std::size_t i);
  static void arrive(Block& block);
  void release(std::size_t i);
  void lend_buffers(ops::Tape& tape, std::size_t i);
  void sum(ops::Tape* tape, std::size_t i, bool first);
  void start_last();
  void end_first();
  void end_sums();

  dist::Group &whole_, &cut_;
  dist::Group* const replicas_;
  const Options options_;
  bool late_ = false;  // sums start in finish()
  std::function<void(Way)> told_;
  bool passing_ = false;
  std::vector<Block> blocks_;
  std::deque<Sum> sums_;
  int gathered_ = 0, most_gathered_ = 0;
  // With at_once: whether backward leaves final gradients, and number of blocks not yet summed.
  bool last_ = false;
  std::size_t left_ = 0;
};

/// A pass through a network whose blocks are gathered.
struct BlockPass {
  BlockShards* blocks = nullptr;
  BlockShards::Way way = BlockShards::Way::forward;
  bool operator==(const BlockPass&) const = default;
};

}  // namespace vfm::nn
