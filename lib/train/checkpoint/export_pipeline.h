// The parts of a diffusers pipeline around a network that vfm-train trained.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "models/dit/network.h"
#include "models/folder/model_facts.h"
#include "train/checkpoint/export.h"

namespace vfm::train {

/// What of a run makes a pipeline of diffusers.
struct PipelineParts {
  std::string why_not;                ///< there is none, for this reason; the rest is empty then
  std::string type;                   ///< "CosmosTextToWorldPipeline"
  std::string vae;                    ///< folder or run, as ModelFolder takes it
  std::string text_model, tokenizer;  ///< folders
};

/// By what a run says whose network is `config`. Throws Error{usage} for a folder
/// that is not there any more, or holds another model than the one that the run used.
PipelineParts find_parts(const models::ModelFacts& facts, const models::NetworkConfig& config,
                         const ExportOptions& options);

/// Writes all but transformer/ into `folder`.
void write_parts(const PipelineParts& parts, const models::ModelFacts& facts,
                 const models::NetworkConfig& config, const std::string& folder, bool copy);

}  // namespace vfm::train
