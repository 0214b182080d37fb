// What a folder says of its model besides configuration and weights: the train.json of a checkpoint
// (vfm-checkpoint(5)); or for a folder of diffusers the same, made from its parts.
//
// Of a pipeline the sampling is its scheduler's, and the rest are the defaults of Cosmos-1.0: 121
// frames of 1280x704 at 30 a second, 36 steps, guidance 7, from sigma 80 to 0.002, prompts filled
// up to 512 tokens. Not its negative prompt: none is used unless one is given. Its safety checker
// is not part of vfm. Source of the defaults: diffusers' pipeline_cosmos_text2world.py.
// Thread-safety: free functions and values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/folder/model_folder.h"
#include "models/process/latent_scale.h"
#include "models/tokenizer.h"
#include "text/encoder.h"

namespace vfm::models {

/// Tokens that Cosmos fills its texts up to, with zero vectors that are attended to.
inline constexpr int kCosmosTextTokens = 512;

/// Extents of a latent, or of pixels.
struct Extents {
  int frames = 1, height = 0, width = 0;
};

/// How a model is sampled where its user does not say; what nobody said is empty.
struct SamplingFacts {
  std::optional<std::int64_t> steps;
  std::optional<double> guidance;
  std::string sampler;  ///< of generate/sampling/sampler.h
  std::optional<double> sigma_min, sigma_max, shift;

  Json to_json() const;  ///< null if nobody said anything
};

/// What the training of a checkpoint began from; all empty: new weights.
struct Origin {
  std::string path, hash;                    ///< ModelFolder::absolute_path() and hash()
  std::string adapters_path, adapters_hash;  ///< of adapters that it went on with, on that model

  static Origin from_json(const Json& value);
  Json to_json() const;  ///< null if it began with new weights
};

/// Whom facts are for: who generates needs them all.
enum class FactsFor { generation, training };

struct ModelFacts {
  std::optional<TokenizerConfig> tokenizer;
  std::optional<text::EncoderConfig> text_encoder;  ///< none: trained without text
  std::optional<LatentScale> scale;  ///< in which it sees latents, whitened; of codes none
  Extents largest;                   ///< latent: of all that it was trained on; height 0: not known
  Extents usual;   ///< latent: what most videos had (stills, if there were no videos)
  double fps = 0;  ///< the rate that most videos had; 0: not known
  SamplingFacts sampling;
  /// Prompts are filled up to this many tokens with zero vectors, all of which are attended to, as
  /// Cosmos was trained; 0: they are not.
  int text_padding = 0;
  /// Whether a prompt without text goes through the encoder, which gives it an end token. Else it
  /// is one zero vector: a sample whose text was dropped in training.
  bool encode_empty = true;
  /// Whether the time input is rounded to bf16, as the network saw it in training.
  bool round_time = false;

  // Of a checkpoint:
  std::optional<std::int64_t> step;
  std::optional<std::uint64_t> seed;
  DType trained_in = DType::f32;
  Origin origin;

  /// Of a train.json, which `what` names. Throws Error for what cannot be, and for generation what
  /// is missing. "sampling", "text_padding" and "encode_empty" are there only where a run began
  /// from a model that has them.
  static ModelFacts from_json(const Json& train, const std::string& what,
                              FactsFor use = FactsFor::generation);
};

/// Those of a folder. Of a bare part of a pipeline only what its network tells. Reads no weights.
/// Throws Error{usage} for generation from a pipeline with other parts than those that work, saying
/// which do; for training not all parts need be there.
ModelFacts read_facts(const ModelFolder& model, FactsFor use = FactsFor::generation);

/// Writes into `config`, the config.json of an export, what read_facts() would take to be as in
/// published models and is not: "text_padding", a number of tokens, and "encode_empty", false. Else
/// it has neither. diffusers leaves both aside, with a warning.
void tell_of_texts(const ModelFacts& facts, Json& config);

/// Of scheduler_config.json in `folder`, an EDMEulerScheduler or, if the sampler is "flow", a
/// FlowMatchEulerDiscreteScheduler. Throws Error{usage} for another scheduler, for settings of
/// these two that there are not, saying which there are, and for values that are of another type,
/// or nothing can be sampled with.
SamplingFacts hf_sampling(const std::string& folder);
/// By the statistics of the tokenizer `vae`, its config.json, which `what` names; without any, mean
/// 0 and deviation 1. Latents of flow matching have unit variance, others sigma_data. Throws Error.
LatentScale hf_latent_scale(const Json& vae, bool flow, std::string_view what);

/// 32 hex digits that change with anything that decides what the model makes, all parts of a
/// pipeline included.
std::string hash_all(const ModelFolder& model);

/// Adds what tokenizer and text encoder are known by, so that other folders can be compared with
/// them. Reads their weights.
void add_part_hashes(ModelFacts& facts);

/// What add_part_hashes() adds for a text encoder. Throws Error{usage} if there is none.
std::string text_encoder_hash(const std::string& folder);

}  // namespace vfm::models
