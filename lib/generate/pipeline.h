// A Cosmos-1.0 pipeline folder as diffusers writes it, as a model to generate with:
//
//   model_index.json   CosmosTextToWorldPipeline or CosmosVideoToWorldPipeline
//   transformer/       CosmosTransformer3DModel
//   vae/               AutoencoderKLCosmos
//   text_encoder/, tokenizer/   T5
//   scheduler/scheduler_config.json   EDMEulerScheduler, or FlowMatchEulerDiscreteScheduler
//
// Defaults are the pipeline's: 121 frames of 1280x704 at 30 a second, 36 steps, guidance 7, from
// sigma 80 to 0.002, prompts filled to 512 tokens. Not its negative prompt: none is used unless
// one is given. Its safety checker is not part of vfm.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "generate/model_facts.h"
#include "models/folder/checkpoint.h"

namespace vfm::generate {

/// Whether `folder` is such a folder, or of another pipeline.
bool is_pipeline(const std::string& folder);

/// The facts (ModelFacts) of a pipeline folder, as train.json has them of a checkpoint. Reads no
/// weights. Throws Error{usage} for another pipeline or component, saying which work.
Json describe_pipeline(const std::string& folder, DType compute);

/// The network, and describe_pipeline() as `train`. Without `compute`: as its weights are. Throws
/// Error{usage} listing all tensors that are missing, left over or misshapen.
models::LoadedModel load_pipeline(const std::string& folder, std::optional<DType> compute,
                                  Device device);

/// 32 hex digits that change with anything that decides what the model of a run, checkpoint or
/// pipeline folder makes.
std::string model_hash(const std::string& folder);

/// Adds to the `train` of a pipeline what its tokenizer and its text encoder are known by, so that
/// other folders can be compared with them. Reads their weights.
void add_part_hashes(Json& train);

/// Warns of a guidance that diffusers' pipelines take to mean none, and vfm does not.
void note_guidance(const std::string& folder, double guidance);

/// The facts of a checkpoint, a run or a pipeline folder, without its weights.
ModelFacts read_facts(const std::string& path);

}  // namespace vfm::generate
