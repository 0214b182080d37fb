// Sums gradients over ranks: the gradient of an element is the sum over all ranks that use it.
//
// For a parameter that every rank has whole, the sum is over all ranks. For a part of a parameter
// it is over the ranks with the same part, those of cp and dp. The stages of a pipeline use
// different parts of the network; gradients of parameters that all stages have are summed along pp,
// too. Sums add in the order of ranks (dist/group.h), so every holder of an element gets the same
// bits, and the weights stay equal.
//
// If ranks share the state (train/state/state_shards.h), the sum of an element goes only to the
// rank that keeps its state; then these sums are added along `replicate`. If all stages have a
// parameter, each stage keeps the state of all of it. With P stages of N ranks, a rank gets the sum
// of 1/P of its own stretch, and then the other parts of the stretch from the other stages. That is
// one sum in the order of ranks, with the same bits as without shared state. The fraction of these
// gradients that is sent is (NP-1 + P-1)/NP, as much as for a sum within stages and another along
// pp.
//
// A message has the gradients of several parameters (train/step/messages.h). The order of messages
// follows from the list of parameters alone, so ranks agree even if one has no samples in a step. A
// message starts when backward has completed the last of its gradients, and travels while backward
// continues. A few travel at a time, each once a step. The bits of the result do not depend on when
// a message starts. In a pipeline a rank that is ahead must not wait for others before all messages
// between stages are sent: so messages that would have to wait, and sums over stages, start in
// finish(). Thread-safety: the thread that made the world.
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
  /// Elements in one message, when many small gradients are sent together.
  static constexpr std::int64_t kMessage = std::int64_t{4} << 20;

  /// `travel` is the type of messages. With bf16, gradients are rounded, added in f32, and the sum
  /// is rounded again. The other choice is f32. `mesh` and `parameters` must outlive this object.
  GradientReducer(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                  DType travel = DType::f32, std::int64_t most = kMessage);
  /// The same for several networks. Their messages follow each other, and none has gradients of two
  /// networks.
  GradientReducer(const dist::Mesh& mesh, const std::vector<const nn::ParameterList*>& networks,
                  DType travel = DType::f32, std::int64_t most = kMessage);

  /// Leaves the networks of which `sums` is false out of the sums of the step that begins. The same
  /// on all ranks.
  void begin(std::vector<bool> sums);

  /// The listener for the pass of a step's last batch (train/step/objective.h) or microbatch
  /// (train/step/pipeline.h). It is empty without messages, and if they must not start during
  /// backward: messages of gathered blocks (nn/block_shards.h) need an undisturbed order, also on a
  /// rank without a batch.
  ops::Tape::Listener listener();
  /// Starts the messages that the listener did not, and waits for all. Afterwards gradients are
  /// sums; with a shared state those of Parameter::state, while other gradients are undefined. A
  /// collective.
  void finish();

 private:
  struct Sent : GradientMessage {
    std::size_t network = 0;
    std::size_t open = 0;  // gradients that are not final yet
    Tensor values;         // during the transfer: the gradients one after the other
    dist::Transfer transfer;
    dist::Group* replicas = nullptr;  // ranks that add the same sums; null: none
    // For parameters on all stages with a shared state; else null.
    dist::Group *stages = nullptr, *ranks_of_stages = nullptr;
    Tensor by_stage;  // the values in the order of ranks_of_stages

    /// The part of `values` that belongs to this rank afterwards.
    Tensor own() const;
    /// The parts of a stretch that the stages sum; and the rows of each rank in `by_stage`.
    std::vector<std::int64_t> parts_of(std::int64_t stretch) const;
    std::vector<std::int64_t> rows_by_stage() const;
    Tensor own_part() const;
    void order_by_stage();
  };
  static void open(Sent& message);
  bool may_start(const Sent& message) const;
  bool left_out(const Sent& message) const { return !sums_[message.network]; }
  void hear(const Tensor& gradient);
  void start_next();
  void end_next();

  const DType travel_;
  const bool staged_;
  bool in_backward_ = true;
  std::vector<bool> sums_;  // by network
  std::vector<Sent> messages_;
  std::map<const std::byte*, std::size_t> places_;  // message number by gradient
  std::size_t started_ = 0, ended_ = 0;             // counts of messages
};

/// The sum of squares of all elements of the reduced gradients, each counted once. The same bits on
/// all ranks. A collective.
double squares_of_gradients(const dist::Mesh& mesh, const nn::ParameterList& parameters);

}  // namespace vfm::train
