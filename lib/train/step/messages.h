// Messages of several parameters: gradients that are summed, and weights that go from the ranks
// that keep their state to the ranks that compute with them.
//
// The grouping of parameters into messages follows from the list of parameters alone, so ranks
// agree. The last parameters come first, in the order of backward. If the ranks of a group share
// the state of a parameter (nn::Parameter::state), the elements of a message are ordered by rank,
// and for each rank by parameter: a rank's own elements are one range. Parameters on all stages of
// a pipeline have messages of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dist/mesh.h"
#include "nn/parameter.h"
#include "tensor/tensor.h"

namespace vfm::train {

/// The axes of the ranks with the same part of a parameter of this rank. Its gradient is summed
/// along them.
dist::Axes gradient_axes(const nn::Parameter& parameter);
/// The axes of the ranks that share the state of the parameter: the same without `replicate`, along
/// which the state is repeated.
dist::Axes state_axes(const nn::Parameter& parameter);

struct GradientMessage {
  dist::Group* group = nullptr;
  bool shares_state = false;  ///< all parameters of the message share their state, or none
  /// With a shared state: all stages have these parameters, and get the sum.
  bool on_all_stages = false;
  std::vector<const nn::Parameter*> parameters;

  std::int64_t elements() const;
  /// With a shared state, the number of elements of each rank of the group; else empty.
  std::vector<std::int64_t> shares() const;
  /// Calls act(elements of a parameter's tensor, place in `values`), both flat, for the elements
  /// whose state `rank` keeps; for all if rank < 0. `values` has elements(); `of` returns a
  /// parameter's tensor.
  using Of = std::function<Tensor(const nn::Parameter&)>;
  using Act = std::function<void(const Tensor& elements, const Tensor& place)>;
  void each(const Tensor& values, int rank, const Of& of, const Act& act) const;
};

/// Plans messages of at most `most` elements, or of one larger parameter. Sharded parameters
/// (nn::Parameter::sharded) are left out, as they go with their block. Parameters of different
/// `type`, if it is given, are in different messages. Groups of one rank have no messages.
std::vector<GradientMessage> plan_messages(
    const dist::Mesh& mesh, const nn::ParameterList& parameters, std::int64_t most,
    const std::function<DType(const nn::Parameter&)>& type = {});

}  // namespace vfm::train
