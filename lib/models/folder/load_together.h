// Weights from disk by several ranks, each of which reads a part of the bytes and sends it to the
// others: so a folder is read once, however many need it.
// Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "dist/group.h"
#include "io/tensor_set.h"
#include "models/dit/network_layout.h"
#include "nn/parameter.h"

namespace vfm::models {

/// Ranks that load one model together.
struct LoadingRanks {
  dist::Group* group = nullptr;  ///< all of them; null: this one is alone
  NetworkLayout layout = {};     ///< which part of the network this one has
  /// Does what exchanges nothing, on each of them; throws where it failed, and ends the others.
  std::function<void(const std::function<void()>&)> agree = [](const auto& act) { act(); };

  int rank() const { return group ? group->rank() : 0; }
  int size() const { return group ? group->size() : 1; }
};

/// load_parameters() by all ranks of `group`, to each what it holds (Parameter::placement). They
/// have the same parameters, whole, in parts or in stretches of these, and the same set. Rounds of
/// one piece a rank, of at most `piece` bytes and 64 MiB together, go in the type of the file.
/// Names, shapes and types are compared before anything is read, with the same result on all ranks;
/// what throws later, as a file that cannot be read, leaves the others waiting. A collective.
void load_parameters(const io::TensorSet& set, const nn::ParameterList& parameters,
                     dist::Group& group, std::int64_t piece = std::int64_t{4} << 20);

}  // namespace vfm::models
