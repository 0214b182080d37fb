// Matrices of which each rank keeps a part, gathered block by block ('parallel.shard' full).
//
// Between their uses a rank has its own stretch of each matrix of a block. Before a block runs, its
// matrices are gathered, and those of the next one begin to travel; after it they are freed: so
// there are two blocks' at most. Backward asks for them again, from the last block on, which
// travels while the loss is computed; there the gradients of a block's matrices have buffers of
// their own from its end to its beginning, and then go, summed, to those that keep the stretches,
// while backward goes on. Products know such a matrix by a name (ops::MatrixSource), so all modes
// of recomputation ask for it when they need it.
//
// Every rank of a group gathers and sums the same blocks in the same order. A pass that a rank has
// no samples for it takes part in with an empty one (fill()). In a pipeline the ranks of a group
// have microbatches of their own, whose blocks come in another order on each: there all blocks of a
// stage are gathered once a step, before the first of them runs, and gradients are summed over the
// microbatches in buffers as large as the matrices. They go to the stretches from when backward of
// the last microbatch has left the block, while it goes on: in one order, that of the blocks from
// the last one, and whoever is ahead waits for nobody until finish().
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
#include "ops/matmul/low_rank.h"
#include "ops/tape.h"
#include "tensor/tensor.h"

namespace vfm::nn {

/// One such matrix.
class ShardedMatrix final : public ops::MatrixSource {
 public:
  /// Of `shape`, of the ranks of the group; a gradient is kept of what is trained.
  ShardedMatrix(const Shape& shape, DType dtype, Device device, dist::Group& group, bool trained);

  /// Throws Error if its block is not gathered.
  Tensor get() const override;

  const Tensor& name() const { return name_; }
  const Tensor& own() const { return own_; }            ///< this rank's stretch, [n]
  const Tensor& gradient() const { return gradient_; }  ///< of it, f32; undefined: not trained
  void watch(ops::Tape& tape) const;
  /// What is gathered from now on: this rank's stretch in another type; undefined: own().
  void gather_in_place_of_own(Tensor stretch) { low_ = std::move(stretch); }
  Tensor gather() const;  ///< the whole matrix, of own(), by itself; a collective
  Tensor stretch_of(const Tensor& all) const;  ///< this rank's, of such a matrix
  /// This rank's stretch of `all`, of another type, is kept from now on, and own() is gone.
  void keep_in_place_of_own(const Tensor& all);

 private:
  friend class BlockShards;
  const Tensor name_, no_gradient_;  // the second is the name of the gradient's buffer
  dist::Group& group_;
  std::vector<std::int64_t> rows_;  // elements of each rank
  Tensor own_, gradient_;
  Tensor low_;        // gathered in place of own_, if it is defined
  Tensor all_, sum_;  // while they are here: the matrix, the buffer of its gradient
};

class BlockShards {
 public:
  struct Options {
    bool keep = false;          ///< gathered matrices stay until drop()
    DType travel = DType::f32;  ///< of gradients: f32 or bf16
    /// They stay: gather_all() begins to gather all, and gradients are summed once a step.
    bool at_once = false;
  };
  /// Who has the same of weights that are whole, and of those that are cut along tp; and who keeps
  /// the same stretches (null: nobody else). They must outlive it.
  BlockShards(dist::Group& whole, dist::Group& cut, dist::Group* replicas, Options options);

  dist::Group& group(bool whole) const { return whole ? whole_ : cut_; }
  /// Those of each block, in the order of the blocks, which must outlive this. Once.
  void set_blocks(std::vector<std::vector<ShardedMatrix*>> blocks);

  /// At once: begins to gather what is not here, and if backward follows lends the gradients
  /// buffers of zeros until they are summed. Otherwise it does nothing.
  void gather_all(bool backward_follows);
  /// At once: whether no gradient comes after those of the backward that begins now, of the blocks
  /// that it passes.
  void last_backward(bool last) { last_ = last; }
  /// At once: starts and ends sums over ranks, as far as that is possible now.
  void go_on();
  /// Before block `i` runs, or after the last one, i = their number. In backward the same the other
  /// way round, by the tape.
  void enter(ops::Tape& tape, std::size_t i);
  /// The passes of a step that this rank has no samples for, after the `done` that it has: `all`
  /// are those of the rank that has most.
  void fill(int done, int all);
  /// The same of one pass without backward.
  void fill_forward();
  /// Waits for what travels: afterwards the gradients of the stretches are those of the step.
  void finish();
  /// Frees what is kept: after the stretches have changed, or where it is not needed for long.
  void drop();

  /// Of this rank's matrices what is here, or gathered for it, and whether its own stretch of that
  /// is as it is now. A collective.
  using Look = std::function<void(const ShardedMatrix&, const Tensor& all, bool current)>;
  void look_at_all(const Look& look);
  /// Blocks that were here at a time.
  int most_gathered() const { return most_gathered_; }

 private:
  struct Block {
    std::vector<ShardedMatrix*> matrices;
    std::vector<dist::Transfer> gathering;
    bool here = false;
    bool final = false;  // at once: its gradients are
  };
  /// A gradient on its way.
  struct Sum {
    std::size_t block = 0;
    ShardedMatrix* matrix = nullptr;
    Tensor buffer, own;
    dist::Transfer transfer;
    bool first = false;  ///< it takes the place of what is there
  };
  void forward(std::size_t i);
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
  std::vector<Block> blocks_;
  std::deque<Sum> sums_;
  int gathered_ = 0, most_gathered_ = 0;
  // At once: whether what backward leaves is final, and blocks of which no sum has started.
  bool last_ = false;
  std::size_t left_ = 0;
};

}  // namespace vfm::nn
