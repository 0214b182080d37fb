// SPDX-License-Identifier: Apache-2.0
#include "train/step/pipeline.h"

#include <algorithm>
#include <list>
#include <map>
#include <utility>
#include <vector>

namespace vfm::train {
namespace {

/// What a message carries, and its way.
struct Carried {
  nn::Streams values;
  std::vector<dist::Transfer> transfers;

  void wait() {
    for (dist::Transfer& transfer : std::exchange(transfers, {}))
      transfer.wait();
  }
  bool done() {
    return std::ranges::all_of(transfers, [](dist::Transfer& one) { return one.done(); });
  }
  nn::Streams take() {
    wait();  // nobody else holds them then
    return std::exchange(values, {});
  }
};

/// A microbatch under way on this rank, by chunk.
struct UnderWay {
  std::unique_ptr<ChunkedPass> pass;
  std::map<int, Carried> stream_in, gradient_in;
  std::map<int, nn::Streams> stream_out, gradient_out;
  std::size_t left = 0;  // steps
};

bool computes(const PipelineStep& step) {
  return step.kind == PipelineStep::Kind::forward || step.kind == PipelineStep::Kind::backward;
}
bool receives(const PipelineStep& step) {
  return step.kind == PipelineStep::Kind::receive_stream ||
         step.kind == PipelineStep::Kind::receive_gradient;
}

/// The same steps, of which those that receive while something is computed begin before it: it may
/// take long, and a message travels only when both ranks are at it. None passes another message, so
/// the order in which ranks send and receive stays the one that blocks nobody.
std::vector<PipelineStep> with_early_receives(std::span<const PipelineStep> steps) {
  std::vector<PipelineStep> early;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t next = i + 1;
    if (computes(steps[i]))
      while (next < steps.size() && receives(steps[next]))
        early.push_back(steps[next++]);
    early.push_back(steps[i]);
    i = next;
  }
  return early;
}

class PipelineRun {
 public:
  PipelineRun(const dist::Mesh& mesh, const Objective& objective,
              std::span<const PipelineStep> steps, std::span<const std::unique_ptr<Batch>> batches,
              const FinalGradients& final)
      : streams_(mesh.group(dist::Axes::pp)),
        gradients_(mesh.upstream()),
        objective_(objective),
        final_(final) {
    for (const PipelineStep& step : steps) {
      ++under_way_[step.microbatch].left;
      if (step.kind == PipelineStep::Kind::backward && batches[step.microbatch])
        last_ = step.microbatch;
    }
  }

  void act(const PipelineStep& step, Batch& batch) {
    UnderWay& at = under_way_[step.microbatch];
    const bool last = step.microbatch == last_;
    if (!at.pass)
      at.pass = objective_.pass_in_chunks(batch, last ? final_.final : ops::Tape::Listener());
    const int chunk = step.chunk;
    switch (step.kind) {
      case PipelineStep::Kind::forward:
        at.stream_out[chunk] = at.pass->forward(chunk, at.stream_in[chunk].take());
        break;
      case PipelineStep::Kind::backward:
        for (nn::BlockShards* const blocks : final_.blocks)
          blocks->last_backward(last);
        at.gradient_out[chunk] = at.pass->backward(chunk, at.gradient_in[chunk].take());
        break;
      case PipelineStep::Kind::send_stream:
        send(streams_, step.peer, std::exchange(at.stream_out[chunk], {}));
        break;
      case PipelineStep::Kind::send_gradient:
        send(gradients_, step.peer, std::exchange(at.gradient_out[chunk], {}));
        break;
      case PipelineStep::Kind::receive_stream:
        at.stream_in[chunk] =
            receive(streams_, step.peer, at.pass->blank(chunk, ChunkedPass::Side::input));
        break;
      case PipelineStep::Kind::receive_gradient:
        at.gradient_in[chunk] =
            receive(gradients_, step.peer, at.pass->blank(chunk, ChunkedPass::Side::output));
        at.pass->expect_backward(chunk);
        break;
    }
    if (--at.left == 0) under_way_.erase(step.microbatch);
    sent_.remove_if([](Carried& message) { return message.done(); });
    for (nn::BlockShards* const blocks : final_.blocks)
      blocks->go_on();
  }

  /// Until all that was sent is received.
  void finish() {
    for (Carried& message : sent_)
      message.wait();
    sent_.clear();
  }

 private:
  void send(dist::Group& group, int to, nn::Streams values) {
    std::vector<dist::Transfer> transfers;
    for (const Tensor& one : values)
      transfers.push_back(group.send(to, one));
    sent_.push_back({std::move(values), std::move(transfers)});
  }
  static Carried receive(dist::Group& group, int from, nn::Streams values) {
    std::vector<dist::Transfer> transfers;
    for (const Tensor& one : values)
      transfers.push_back(group.receive(from, one));
    return {std::move(values), std::move(transfers)};
  }

  dist::Group &streams_, &gradients_;
  const Objective& objective_;
  const FinalGradients& final_;
  std::size_t last_ = 0;  // the microbatch whose backward is the last one, of every chunk
  std::map<std::size_t, UnderWay> under_way_;
  std::list<Carried> sent_;
};

}  // namespace

void run_pipeline(const dist::Mesh& mesh, const Objective& objective,
                  std::span<const std::unique_ptr<Batch>> batches, const PipelineSchedule& schedule,
                  const FinalGradients& gradients) {
  const std::vector<PipelineStep>& steps =
      schedule.ranks.at(static_cast<std::size_t>(mesh.place(dist::Axes::pp)));
  PipelineRun run(mesh, objective, steps, batches, gradients);
  for (const PipelineStep& step : with_early_receives(steps))
    if (const std::unique_ptr<Batch>& batch = batches[step.microbatch]) run.act(step, *batch);
  run.finish();
}

}  // namespace vfm::train
