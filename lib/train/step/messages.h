// Parameters that travel together: the messages in which gradients are summed, and weights go from
// the ranks that keep their state to those that compute with them.
//
// Which are together follows from the list of parameters alone, the last ones first, as backward
// comes to them: so ranks agree. Where the ranks of a group share the state of what they have alike
// (nn::Parameter::state), the elements of a message are in the order of these ranks, and of each
// rank's in that of the parameters: so a rank's own are one range of it. What all stages of a
// pipeline have is in messages of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dist/mesh.h"
#include "nn/parameter.h"
#include "tensor/tensor.h"

namespace vfm::train {

/// The axes of the ranks that have the same of a parameter that is here: along them its gradient is
/// summed.
dist::Axes gradient_axes(const nn::Parameter& parameter);
/// And of those that share its state, where ranks do: all but those along `replicate`, which keep
/// the same.
dist::Axes state_axes(const nn::Parameter& parameter);

struct GradientMessage {
  dist::Group* group = nullptr;
  bool shares_state = false;  ///< of all its parameters, or of none
  /// Of a shared state: whether all stages have these parameters, and so the sum is theirs, too.
  bool on_all_stages = false;
  std::vector<const nn::Parameter*> parameters;

  std::int64_t elements() const;
  /// Of the ranks of the group, if they share the state: how much of it is whose. Else empty.
  std::vector<std::int64_t> shares() const;
  /// Calls act(tensor's elements, place in `values`), both flat, for all that a rank has the state
  /// of, rank < 0: for everything. `values` has elements(); `of` gives a parameter's tensor.
  using Of = std::function<Tensor(const nn::Parameter&)>;
  using Act = std::function<void(const Tensor& elements, const Tensor& place)>;
  void each(const Tensor& values, int rank, const Of& of, const Act& act) const;
};

/// Messages of at most so many elements, but for a parameter that is larger alone; of what is
/// sharded (nn::Parameter::sharded) none: that goes with its block. `type`, if it is
/// given, tells apart what cannot travel together. Where a group has one rank there are none.
std::vector<GradientMessage> plan_messages(
    const dist::Mesh& mesh, const nn::ParameterList& parameters, std::int64_t most,
    const std::function<DType(const nn::Parameter&)>& type = {});

}  // namespace vfm::train
