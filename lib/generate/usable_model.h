// The model of a job on its ranks: how they share it, loaded and checked before any work.
// Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "generate/clip_ranks.h"
#include "generate/generate.h"
#include "generate/generator.h"
#include "generate/network_headers.h"
#include "generate/shared_clip.h"

namespace vfm::generate {

/// What ranks, so many of them on a machine, exchange in self-attention: of a clip as the model's
/// are. Throws Error{usage} for what ranks cannot share: clips of an autoregressive model.
models::CpChoice choose_cp(const ClipParallel& parallel, const NetworkHeaders& network,
                           const ModelFacts& facts, int of_machine);

/// The ranks of the job, which comes to say what they agreed on: the checkpoint that its model
/// means, the layout that was left open, and the kind of cp. Throws Error{usage} for what ranks
/// cannot share: clips of an autoregressive model. A collective.
std::unique_ptr<ClipRanks> agree_on_ranks(GenerateJob& job, dist::World& world);

/// A rank that leads has a generator, the others have network and tokenizer alone; and what makes
/// a clip of both, where there are others.
struct UsableModel {
  std::optional<models::LoadedModel> network_alone;
  std::unique_ptr<models::VideoTokenizer> tokenizer_alone;  ///< null: latents are made
  std::unique_ptr<SharedClip> shared;                       ///< null: ranks make clips alone
  std::optional<Generator> generator;
  std::string tokenizer_compute;  ///< of move_parts()
};

/// A model that cannot be used, and options that do not suit it, are known before any work: throws
/// Error{usage}, on the first rank that finds it. A collective.
UsableModel load_usable(const GenerateJob& job, const ClipRanks& ranks);

}  // namespace vfm::generate
