// SPDX-License-Identifier: Apache-2.0
#include "train/step/messages.h"

#include <map>
#include <tuple>
#include <utility>

namespace vfm::train {

using dist::Axes;

namespace {

/// What a rank has of a parameter if all have as much: the same number on all.
std::int64_t usual_elements(const dist::Mesh& mesh, const nn::Parameter& parameter) {
  return parameter.whole() ? parameter.elements()
                           : element_count(parameter.placement.global) / mesh.size(Axes::tp);
}

}  // namespace

Axes gradient_axes(const nn::Parameter& parameter) {
  const Axes axes = parameter.whole() ? Axes::tp | Axes::cp | Axes::dp : Axes::cp | Axes::dp;
  return parameter.on_all_stages ? axes | Axes::pp : axes;
}

Axes state_axes(const nn::Parameter& parameter) {
  return parameter.whole() ? Axes::tp | Axes::cp | Axes::shard : Axes::cp | Axes::shard;
}

std::int64_t GradientMessage::elements() const {
  std::int64_t sum = 0;
  for (const nn::Parameter* parameter : parameters)
    sum += parameter->elements();
  return sum;
}

std::vector<std::int64_t> GradientMessage::shares() const {
  std::vector<std::int64_t> counts;
  for (int rank = 0; shares_state && rank < group->size(); ++rank) {
    counts.push_back(0);
    for (const nn::Parameter* parameter : parameters)
      counts.back() += nn::state_stretch(*parameter, rank, group->size()).count();
  }
  return counts;
}

void GradientMessage::each(const Tensor& values, int rank, const Of& of, const Act& act) const {
  std::int64_t at = 0;
  const Tensor all = values.reshape({values.elements()});
  for (int owner = 0; owner < (shares_state ? group->size() : 1); ++owner)
    for (const nn::Parameter* parameter : parameters) {
      const nn::Stretch stretch = shares_state ? nn::state_stretch(*parameter, owner, group->size())
                                               : nn::Stretch{0, parameter->elements()};
      const std::int64_t begin = std::exchange(at, at + stretch.count());
      if (stretch.count() == 0 || (rank >= 0 && owner != rank)) continue;
      act(of(*parameter).reshape({parameter->elements()}).rows(stretch.begin, stretch.end),
          all.rows(begin, at));
    }
}

std::vector<GradientMessage> plan_messages(const dist::Mesh& mesh,
                                           const nn::ParameterList& parameters, std::int64_t most,
                                           const std::function<DType(const nn::Parameter&)>& type) {
  struct Open {
    GradientMessage message;
    std::int64_t elements = 0;
  };
  std::vector<GradientMessage> messages;
  std::map<std::tuple<Axes, DType, bool>, Open> open;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const nn::Parameter& parameter = *parameters[i];
    if (parameter.sharded) continue;
    const bool elsewhere = mesh.layout().pp > 1 && !parameter.here();
    if (elsewhere) continue;  // in another stage, as for all who would be in a message with it
    const bool shares = parameter.state != nullptr;
    const Axes axes = shares ? state_axes(parameter) : gradient_axes(parameter);
    if (mesh.size(axes) == 1) continue;
    const bool on_all = shares && parameter.on_all_stages;
    Open& last = open[{axes, type ? type(parameter) : DType::f32, on_all}];
    const std::int64_t more = usual_elements(mesh, parameter);
    if (!last.message.parameters.empty() && last.elements + more > most)
      messages.push_back(std::exchange(last, {}).message);
    last.message.group = &mesh.group(axes);
    last.message.shares_state = shares;
    last.message.on_all_stages = on_all;
    last.message.parameters.push_back(&parameter);
    last.elements += more;
  }
  for (auto& [key, last] : open)
    messages.push_back(std::move(last.message));
  return messages;
}

}  // namespace vfm::train
