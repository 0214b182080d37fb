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

/// Parts of a diffusers pipeline that a run gives.
struct PipelineParts {
  std::string why_not;  ///< why no pipeline is possible; the other fields are empty then
  std::string type;                   ///< "CosmosTextToWorldPipeline"
  std::string vae;                    ///< folder or run, as ModelFolder takes it
  std::string text_model, tokenizer;  ///< folders
};

/// Finds the parts of a run whose network has `config`. Throws Error{usage} if a folder is gone, or
/// does not hold the model that the run used.
PipelineParts find_parts(const models::ModelFacts& facts, const models::NetworkConfig& config,
                         const ExportOptions& options);

/// Writes all parts except transformer/ into `folder`.
void write_parts(const PipelineParts& parts, const models::ModelFacts& facts,
                 const models::NetworkConfig& config, const std::string& folder, bool copy);

}  // namespace vfm::train
