// SPDX-License-Identifier: Apache-2.0
#include "train/step/gradients.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "nn/placement.h"
#include "ops/optim/sums.h"

namespace vfm::train {

using dist::Axes;

namespace {

/// Messages that travel at a time: each keeps a copy of its gradients, and a rank of the host sums
/// with as much again.
constexpr std::size_t kMost = 4;

Tensor gradient_of(const nn::Parameter& parameter) {
  return parameter.grad;
}

}  // namespace

GradientReducer::GradientReducer(const dist::Mesh& mesh, const nn::ParameterList& parameters,
                                 DType travel, std::int64_t most)
    : GradientReducer(mesh, std::vector{&parameters}, travel, most) {}

GradientReducer::GradientReducer(const dist::Mesh& mesh,
                                 const std::vector<const nn::ParameterList*>& networks,
                                 DType travel, std::int64_t most)
    : travel_(travel), staged_(mesh.layout().pp > 1), sums_(networks.size(), true) {
  for (std::size_t network = 0; network < networks.size(); ++network) {
    const nn::ParameterList& parameters = *networks[network];
    if (std::ranges::any_of(parameters, &nn::Parameter::sharded)) in_backward_ = false;
    for (GradientMessage& message : plan_messages(mesh, parameters, most)) {
      for (const nn::Parameter* parameter : message.parameters)
        if (parameter->elements() > 0)
          places_[parameter->grad.data<std::byte>()] = messages_.size();
      Sent& sent = messages_.emplace_back();
      static_cast<GradientMessage&>(sent) = std::move(message);
      sent.network = network;
      if (sent.shares_state && mesh.size(Axes::replicate) > 1)
        sent.replicas = &mesh.group(Axes::replicate);
      if (sent.on_all_stages) {
        sent.stages = &mesh.group(Axes::pp);
        sent.ranks_of_stages = &mesh.group(Axes::tp | Axes::cp | Axes::shard | Axes::pp);
      }
      open(sent);
    }
  }
}

void GradientReducer::begin(std::vector<bool> sums) {
  if (sums.size() != sums_.size()) fail("{} networks, not {}", sums_.size(), sums.size());
  sums_ = std::move(sums);
}

Tensor GradientReducer::Sent::own() const {
  const Tensor all = values.reshape({values.elements()});
  if (!shares_state) return all;
  const std::vector<std::int64_t> rows = shares();
  const auto mine = rows.begin() + group->rank();
  const std::int64_t begin = std::accumulate(rows.begin(), mine, std::int64_t{0});
  return all.rows(begin, begin + *mine);
}

std::vector<std::int64_t> GradientReducer::Sent::parts_of(std::int64_t stretch) const {
  std::vector<std::int64_t> parts;
  for (int stage = 0; stage < stages->size(); ++stage)
    parts.push_back(nn::share(stretch, stage + 1, stages->size()) -
                    nn::share(stretch, stage, stages->size()));
  return parts;
}

std::vector<std::int64_t> GradientReducer::Sent::rows_by_stage() const {
  const std::vector<std::int64_t> stretches = shares();
  std::vector<std::int64_t> rows(static_cast<std::size_t>(ranks_of_stages->size()));
  for (std::size_t rank = 0; rank < stretches.size(); ++rank) {
    const std::vector<std::int64_t> parts = parts_of(stretches[rank]);
    for (std::size_t stage = 0; stage < parts.size(); ++stage)
      rows[stage * stretches.size() + rank] = parts[stage];
  }
  return rows;
}

/// Of `by_stage` what this rank sums.
Tensor GradientReducer::Sent::own_part() const {
  const std::vector<std::int64_t> rows = rows_by_stage();
  const auto mine = rows.begin() + ranks_of_stages->rank();
  const std::int64_t begin = std::accumulate(rows.begin(), mine, std::int64_t{0});
  return by_stage.rows(begin, begin + *mine);
}

// The values are by rank of a stage, and go to the ranks of all stages, one stage after the other.
void GradientReducer::Sent::order_by_stage() {
  by_stage = Tensor({values.elements()}, values.dtype(), values.device());
  const Tensor all = values.reshape({values.elements()});
  const std::vector<std::int64_t> rows = rows_by_stage();
  std::int64_t from = 0;
  for (int rank = 0; rank < group->size(); ++rank)
    for (int stage = 0; stage < stages->size(); ++stage) {
      const auto part = rows.begin() + stage * group->size() + rank;
      const std::int64_t to = std::accumulate(rows.begin(), part, std::int64_t{0});
      if (*part > 0) copy(all.rows(from, from + *part), by_stage.rows(to, to + *part));
      from += *part;
    }
}

void GradientReducer::open(Sent& message) {
  message.open = 0;
  for (const nn::Parameter* parameter : message.parameters)
    message.open += parameter->elements() > 0;
}

ops::Tape::Listener GradientReducer::listener() {
  if (messages_.empty() || !in_backward_) return {};
  return [this](const Tensor& gradient) { hear(gradient); };
}

// The buffer of a matrix is that of several parameters, one after the other.
void GradientReducer::hear(const Tensor& gradient) {
  const auto* begin = gradient.data<std::byte>();
  for (auto at = places_.lower_bound(begin);
       at != places_.end() && at->first < begin + gradient.bytes(); ++at) {
    Sent& message = messages_[at->second];
    if (left_out(message)) continue;
    if (message.open == 0) fail("a gradient is final twice in a step");
    --message.open;
  }
  const auto start = [this] {
    while (started_ < messages_.size() && may_start(messages_[started_]))
      start_next();
  };
  start();
  // With replicas or stages there is another exchange to start, which all are to do at one point.
  while (ended_ < started_ && messages_[ended_].replicas == nullptr &&
         messages_[ended_].stages == nullptr && messages_[ended_].transfer.done())
    end_next();
  start();
}

bool GradientReducer::may_start(const Sent& message) const {
  if (left_out(message)) return true;
  if (message.open > 0) return false;
  if (!staged_) return true;
  return started_ - ended_ < kMost && !message.parameters.front()->on_all_stages;
}

void GradientReducer::start_next() {
  if (started_ - ended_ == kMost) end_next();
  Sent& message = messages_[started_++];
  if (left_out(message)) return;
  const Tensor& only = message.parameters.front()->grad;
  if (message.parameters.size() == 1 && travel_ == DType::f32) {
    message.values = only;
  } else {
    message.values = Tensor({message.elements()}, travel_, only.device());
    message.each(message.values, -1, gradient_of,
                 [](const Tensor& gradient, const Tensor& place) { convert(gradient, place); });
  }
  if (!message.shares_state) {
    message.transfer = message.group->all_reduce(message.values);
    return;
  }
  if (message.stages != nullptr) {
    message.order_by_stage();
    message.transfer = message.ranks_of_stages->reduce_scatter(message.by_stage, message.own_part(),
                                                               message.rows_by_stage());
    return;
  }
  message.transfer = message.group->reduce_scatter(message.values.reshape({message.elements()}),
                                                   message.own(), message.shares());
}

void GradientReducer::end_next() {
  Sent& message = messages_[ended_++];
  if (left_out(message)) return;
  message.transfer.wait();
  if (message.replicas != nullptr)
    message.replicas->all_reduce(message.stages != nullptr ? message.own_part() : message.own())
        .wait();
  if (message.stages != nullptr) {
    message.stages
        ->all_gather(message.own_part(), message.own(), message.parts_of(message.own().elements()))
        .wait();
    message.by_stage = Tensor();
  }
  message.each(message.values, message.shares_state ? message.group->rank() : -1, gradient_of,
               [](const Tensor& gradient, const Tensor& place) {
                 if (place.raw() != gradient.raw()) convert(place, gradient);
               });
  message.values = Tensor();
}

void GradientReducer::finish() {
  while (started_ < messages_.size())
    start_next();
  while (ended_ < messages_.size())
    end_next();
  for (Sent& message : messages_)
    open(message);
  started_ = ended_ = 0;
}

double squares_of_gradients(const dist::Mesh& mesh, const nn::ParameterList& parameters) {
  std::vector<ops::Extent> on_all, wholes, parts;
  for (const nn::Parameter* parameter : parameters) {
    if (mesh.layout().pp > 1 && !parameter->here()) continue;
    std::vector<ops::Extent>& kind = parameter->on_all_stages ? on_all
                                     : parameter->whole()     ? wholes
                                                              : parts;
    kind.push_back({parameter->grad.data<float>(), parameter->elements()});
  }
  const Device device = parameters.front()->device();
  double sum = ops::sum_squares(device, parts);
  mesh.group(Axes::tp).all_reduce(std::span(&sum, 1)).wait();
  sum += ops::sum_squares(device, wholes);
  if (mesh.layout().pp == 1) return sum;
  mesh.group(Axes::pp).all_reduce(std::span(&sum, 1)).wait();
  return sum + ops::sum_squares(device, on_all);
}

}  // namespace vfm::train
