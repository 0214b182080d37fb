// Gradients over ranks: that of an element is the sum over all ranks that use it.
//
// Of a parameter that every rank has whole, these are all ranks; of a part of one, those that hold
// the same part: the ranks of cp and dp. Ranks of other stages of a pipeline use another part of
// the network, but for what all stages have: that is summed along pp, too. Sums add in the order of
// ranks (dist/group.h), so every holder of an element has the same bits, and their weights stay
// alike. Where ranks share the state (train/state/state_shards.h), the sum of an element goes to
// the one that keeps its state, and nowhere else; along `replicate` these are added then. Where all
// stages have a parameter, each keeps the state of all of it: of P stages with N ranks each every
// rank gets the sum of 1/P of its own stretch, and then the other stages' parts of it. That is
// still one sum in the order of ranks, with the bits of one that nobody shares, and (NP - 1 + P -
// 1)/NP of these gradients are sent: as much as by a sum in each stage and another along pp.
//
// Parameters travel several in a message (train/step/messages.h), whose order follows from the list
// of parameters alone: so ranks agree also where one has no samples in this step. A message starts
// when backward has the last of its gradients, and travels while it goes on; a few at a time, each
// once a step. When it starts makes no difference to any bit. In a pipeline a rank that is ahead of
// others waits for none of them before all its stages' messages are sent: what cannot start
// without, and sums over stages, start in finish().
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "dist/mesh.h"
#include "nn/parameter.h"
#include "ops/tape.h"
#include "train/step/messages.h"

namespace vfm::train {

class GradientReducer {
 public:
  /// Elements that travel in one message, where many small gradients are together.
  static constexpr std::int64_t kMessage = std::int64_t{4} << 20;

  /// `travel` is f32, or bf16: gradients are rounded before they are added, in f32, and the sum is
  /// rounded again. Both must outlive it.
  GradientReducer(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                  DType travel = DType::f32, std::int64_t most = kMessage);

  /// For the pass of a step's last batch (train/step/objective.h), or of its last microbatch
  /// (train/step/pipeline.h); empty where nothing travels, or not then: where blocks are gathered
  /// (nn/block_shards.h) their messages come in an order that no others disturb, also on a rank
  /// without a batch.
  ops::Tape::Listener listener();
  /// Starts what nobody was told of, and waits: afterwards the gradients are the sums; of a shared
  /// state those of Parameter::state, and the rest says nothing. A collective.
  void finish();

 private:
  struct Sent : GradientMessage {
    std::size_t open = 0;  // of their gradients, that are not final yet
    Tensor values;         // while it travels: these one after the other
    dist::Transfer transfer;
    dist::Group* replicas = nullptr;  // who has the same sums to add; null: nobody
    // Of what all stages have where the state is shared; else null.
    dist::Group *stages = nullptr, *ranks_of_stages = nullptr;
    Tensor by_stage;  // the values in the order of ranks_of_stages

    /// Of `values` what is this rank's afterwards.
    Tensor own() const;
    /// What each stage sums of such a stretch of so many elements; and of `by_stage` each rank.
    std::vector<std::int64_t> parts_of(std::int64_t stretch) const;
    std::vector<std::int64_t> rows_by_stage() const;
    Tensor own_part() const;
    void order_by_stage();
  };
  static void open(Sent& message);
  bool may_start(const Sent& message) const;
  void hear(const Tensor& gradient);
  void start_next();
  void end_next();

  const DType travel_;
  const bool staged_;
  bool in_backward_ = true;
  std::vector<Sent> messages_;
  std::map<const std::byte*, std::size_t> places_;  // of each gradient: its message
  std::size_t started_ = 0, ended_ = 0;             // messages
};

/// The sum of squares of all elements of the gradients, each counted once, after they were reduced.
/// The same bits on all ranks. A collective.
double squares_of_gradients(const dist::Mesh& mesh, const nn::ParameterList& parameters);

}  // namespace vfm::train
