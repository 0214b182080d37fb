// The model of a job on its ranks: its layout, loaded and checked before any work. Thread-safety:
// the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "generate/generate.h"
#include "generate/ranks/clip_network.h"
#include "generate/ranks/clip_ranks.h"
#include "generate/sampling/generator.h"
#include "generate/sampling/network_headers.h"

namespace vfm::generate {

/// Returns the layout with nothing left open in cp, for a clip of the model's usual size, with
/// `of_machine` ranks on a machine. Throws Error{usage} for an axis that the model's ranks cannot
/// share clips along.
dist::Layout settle_layout(const dist::Layout& parallel, const NetworkHeaders& network,
                           const ModelFacts& facts, int of_machine);

/// The model of a job and the ranks that use it. A leading rank has a generator, the others only
/// network and tokenizer; `shared` connects them.
struct UsableModel {
  GenerateJob job;  ///< with what the ranks agreed on: checkpoint, layout, parts in FP8
  std::unique_ptr<ClipRanks> ranks;
  std::optional<models::LoadedModel> network_alone;
  std::unique_ptr<models::VideoTokenizer> tokenizer_alone;  ///< null: latents are made
  std::unique_ptr<ClipNetwork> shared;                      ///< null: ranks make clips alone
  std::optional<Generator> generator;
  std::string tokenizer_compute;  ///< of move_parts()
};

/// Opens the job's model, which for several ranks is the checkpoint that rank 0 finds, and loads
/// it. Throws Error{usage} before any work, on the first rank that finds an unusable model or
/// unsuitable options. A collective.
UsableModel load_usable(const GenerateJob& job, dist::World& world);

}  // namespace vfm::generate
