// SPDX-License-Identifier: Apache-2.0
#include "train/state/state_shards.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "ops/optim/sums.h"
#include "train/step/gradients.h"

namespace vfm::train {

using dist::Axes;

namespace {

/// Messages of weights that travel at a time.
constexpr std::size_t kWeightsAtATime = 4;

const Tensor& sent_of(const nn::Parameter& parameter) {
  return parameter.split() ? parameter.high : parameter.value;
}

struct WeightsOnTheirWay {
  const GradientMessage* message;
  Tensor values;
  dist::Transfer transfer;
};

WeightsOnTheirWay start_weights(const GradientMessage& message) {
  const Tensor& first = sent_of(*message.parameters.front());
  const int rank = message.group->rank();
  const std::vector<std::int64_t> rows = message.shares();
  const std::int64_t begin = std::accumulate(rows.begin(), rows.begin() + rank, std::int64_t{0});
  WeightsOnTheirWay sent{&message, {}, {}};
  if (message.parameters.size() == 1) {
    sent.values = first.reshape({first.elements()});
  } else {
    sent.values = Tensor({message.elements()}, first.dtype(), first.device());
    message.each(sent.values, rank, sent_of,
                 [](const Tensor& elements, const Tensor& place) { copy(elements, place); });
  }
  const Tensor own = sent.values.rows(begin, begin + rows[static_cast<std::size_t>(rank)]);
  sent.transfer = message.group->all_gather(own, sent.values, rows);
  return sent;
}

void end_weights(WeightsOnTheirWay& sent) {
  sent.transfer.wait();
  const GradientMessage& message = *sent.message;
  if (message.parameters.size() == 1) return;
  message.each(sent.values, -1, sent_of,
               [](const Tensor& elements, const Tensor& place) { copy(place, elements); });
}

}  // namespace

dist::Group& holders_of(const dist::Mesh& mesh, const nn::ParameterList& parameters) {
  const bool shared = std::ranges::any_of(parameters, [](const nn::Parameter* parameter) {
    return parameter->state != nullptr || !parameter->placement.part.empty();
  });
  const Axes axes = shared ? Axes::tp | Axes::cp | Axes::shard : Axes::tp;
  return mesh.group(mesh.layout().pp > 1 ? axes | Axes::pp : axes);
}

StateShards::StateShards(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                         nn::BlockShards* blocks, std::int64_t most)
    : mesh_(mesh), parameters_(parameters), states_(nn::states_of(parameters)), blocks_(blocks) {
  nn::ParameterList shared;
  std::ranges::copy_if(parameters, std::back_inserter(shared),
                       [](const nn::Parameter* parameter) { return parameter->state != nullptr; });
  any_ = !shared.empty();
  messages_ = plan_messages(mesh, shared, most, [](const nn::Parameter& parameter) {
    return sent_of(parameter).dtype();
  });
}

void StateShards::gather() const {
  if (blocks_ != nullptr) blocks_->drop();
  std::deque<WeightsOnTheirWay> sent;
  const auto end_first = [&] {
    end_weights(sent.front());
    sent.pop_front();
  };
  for (const GradientMessage& message : messages_) {
    if (sent.size() == kWeightsAtATime) end_first();
    sent.push_back(start_weights(message));
  }
  while (!sent.empty())
    end_first();
}

std::optional<double> StateShards::squares() const {
  if (!any_) {
    if (holders_of(mesh_, parameters_).size() == 1) return {};
    return squares_of_gradients(mesh_, parameters_);
  }
  const bool first_stage = mesh_.layout().pp == 1 || mesh_.place(Axes::pp) == 0;
  std::vector<ops::Extent> own;
  for (const nn::Parameter* state : states_)
    if (first_stage || !state->on_all_stages)
      own.push_back({state->grad.data<float>(), state->elements()});
  double sum = ops::sum_squares(states_.front()->device(), own);
  holders_of(mesh_, states_).all_reduce(std::span(&sum, 1)).wait();
  return sum;
}

}  // namespace vfm::train
