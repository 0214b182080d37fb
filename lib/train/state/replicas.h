// Finds a rank whose weights or state are not those of the ranks that should have the same: its
// processor computes wrongly, or its memory was changed.
//
// Ranks along dp and cp have the same weights, and those along tp the same vectors that are not cut
// (train/step/messages.h). A state that ranks share is the same along `replicate` alone. Copies on
// other stages of a pipeline are not compared. Each rank hashes its tensors; the hashes of all
// tensors together travel, and those of each only if they differ.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "dist/mesh.h"
#include "nn/parameter.h"
#include "train/state/optimizer.h"

namespace vfm::train {

/// The parameters of a network, and its optimizer; null: they are not trained.
struct NetworkState {
  const nn::ParameterList* parameters = nullptr;
  const Optimizer* optimizer = nullptr;
};

/// Throws Error on all ranks if some differ. The Error that is reported is that of a rank that
/// differs from the majority of its group: it names the rank, its host and the first parameter. If
/// there is no majority, it names the first two ranks that differ. A collective.
void compare_replicas(const dist::Mesh& mesh, std::span<const NetworkState> networks);

}  // namespace vfm::train
