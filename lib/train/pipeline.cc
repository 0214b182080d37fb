// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline.h"

#include <list>
#include <map>
#include <utility>
#include <vector>

namespace vfm::train {
namespace {

/// What a message carries, and its way.
struct Carried {
  Tensor values;
  dist::Transfer transfer;

  Tensor take() {
    transfer.wait();
    return std::exchange(values, Tensor());
  }
};

/// A microbatch under way on this rank, by chunk.
struct UnderWay {
  std::unique_ptr<ChunkedPass> pass;
  std::map<int, Carried> stream_in, gradient_in;
  std::map<int, Tensor> stream_out, gradient_out;
  std::size_t left = 0;  // steps
};

class PipelineRun {
 public:
  PipelineRun(const dist::Mesh& mesh, const Objective& objective,
              std::span<const PipelineStep> steps)
      : streams_(mesh.group(dist::Axes::pp)), gradients_(mesh.upstream()), objective_(objective) {
    for (const PipelineStep& step : steps)
      ++under_way_[step.microbatch].left;
  }

  void act(const PipelineStep& step, Batch& batch) {
    UnderWay& at = under_way_[step.microbatch];
    if (!at.pass) at.pass = objective_.pass_in_chunks(batch);
    const int chunk = step.chunk;
    switch (step.kind) {
      case PipelineStep::Kind::forward:
        at.stream_out[chunk] = at.pass->forward(chunk, at.stream_in[chunk].take());
        break;
      case PipelineStep::Kind::backward:
        at.gradient_out[chunk] = at.pass->backward(chunk, at.gradient_in[chunk].take());
        break;
      case PipelineStep::Kind::send_stream:
        send(streams_, step.peer, std::exchange(at.stream_out[chunk], Tensor()));
        break;
      case PipelineStep::Kind::send_gradient:
        send(gradients_, step.peer, std::exchange(at.gradient_out[chunk], Tensor()));
        break;
      case PipelineStep::Kind::receive_stream:
        at.stream_in[chunk] = receive(streams_, step.peer, *at.pass);
        break;
      case PipelineStep::Kind::receive_gradient:
        at.gradient_in[chunk] = receive(gradients_, step.peer, *at.pass);
        break;
    }
    if (--at.left == 0) under_way_.erase(step.microbatch);
    sent_.remove_if([](Carried& message) { return message.transfer.done(); });
  }

  /// Until all that was sent is received.
  void finish() {
    for (Carried& message : sent_)
      message.transfer.wait();
    sent_.clear();
  }

 private:
  void send(dist::Group& group, int to, Tensor values) {
    dist::Transfer transfer = group.send(to, values);
    sent_.push_back({std::move(values), std::move(transfer)});
  }
  static Carried receive(dist::Group& group, int from, const ChunkedPass& pass) {
    Tensor values = pass.blank_stream();
    dist::Transfer transfer = group.receive(from, values);
    return {std::move(values), std::move(transfer)};
  }

  dist::Group &streams_, &gradients_;
  const Objective& objective_;
  std::map<std::size_t, UnderWay> under_way_;
  std::list<Carried> sent_;
};

}  // namespace

void run_pipeline(const dist::Mesh& mesh, const Objective& objective,
                  std::span<const std::unique_ptr<Batch>> batches,
                  const PipelineSchedule& schedule) {
  const std::vector<PipelineStep>& steps =
      schedule.ranks.at(static_cast<std::size_t>(mesh.place(dist::Axes::pp)));
  PipelineRun run(mesh, objective, steps);
  for (const PipelineStep& step : steps)
    if (const std::unique_ptr<Batch>& batch = batches[step.microbatch]) run.act(step, *batch);
  run.finish();
}

}  // namespace vfm::train
