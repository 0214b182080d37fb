// Loads weights from disk on several ranks. Each reads a part of the bytes and sends it to the
// others, so a folder is read only once.
// Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "dist/group.h"
#include "io/tensor_set.h"
#include "nn/network_layout.h"
#include "nn/parameter.h"

namespace vfm::models {

/// Ranks that load one model together.
struct LoadingRanks {
  dist::Group* group = nullptr;  ///< all of them; null: one rank alone
  /// The ranks that share the network; null: each has its own. Of a model with two networks they
  /// load the second one without the others.
  dist::Group* sharing = nullptr;
  nn::NetworkLayout layout = {};  ///< this rank's part of the network
  /// Runs a function that exchanges nothing, on each rank. If it fails on one, throws there and
  /// ends the others.
  std::function<void(const std::function<void()>&)> agree = [](const auto& act) { act(); };

  int rank() const { return group ? group->rank() : 0; }
  int size() const { return group ? group->size() : 1; }
};

/// load_parameters() on all ranks of `group`. Each rank gets what it holds (Parameter::placement).
/// All have the same parameters, whole, in parts or in stretches of parts, and the same set. Values
/// travel in the type of the file, or in f32 if the file has codes, in rounds of one piece per
/// rank, of at most `piece` bytes and 64 MiB together. Names, shapes and types are compared before
/// anything is read, with the same result on all ranks. A later exception, such as a file that
/// cannot be read, leaves the other ranks waiting. A collective.
void load_parameters(const io::TensorSet& set, const nn::ParameterList& parameters,
                     dist::Group& group, std::int64_t piece = std::int64_t{4} << 20);

}  // namespace vfm::models
