// Facts about a model in its folder besides configuration and weights: the train.json of a
// checkpoint (vfm-checkpoint(5)), or the same facts made from the parts of a diffusers folder.
//
// For a pipeline, sampling comes from its scheduler. The rest are the defaults of the pipeline's
// class (PipelineForm in models/dit/foreign.h). Its negative prompt is not used; there is none
// unless one is given. A safety checker is not part of vfm.
// Thread-safety: free functions and values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/dit/foreign.h"
#include "models/folder/model_config.h"
#include "models/folder/model_folder.h"
#include "models/process/latent_scale.h"
#include "models/process/sampler.h"
#include "models/tokenizer.h"
#include "text/encoder.h"

namespace vfm::models {

/// Extents of a latent, or of pixels.
struct Extents {
  int frames = 1, height = 0, width = 0;
};

/// Default sampling of a model. Values that nobody has set are empty.
struct SamplingFacts {
  std::optional<std::int64_t> steps;
  /// `guidance_low`: below ModelFacts::boundary, if it differs there.
  std::optional<double> guidance, guidance_low;
  std::optional<Sampler> sampler;
  Process process;  ///< the process that the model was trained with; left out for EDM
  std::optional<double> sigma_min, sigma_max, shift;
  /// How diffusers samples the model, if its authors' program does it otherwise (SampledAs). Then
  /// `steps`, guidance and `shift` are those of that program.
  std::optional<InDiffusers> diffusers;

  /// The shift of a scheduler of diffusers.
  double scheduler_shift() const { return diffusers ? diffusers->shift : shift.value_or(1); }
  Json to_json() const;  ///< null if no value is set
};

/// The model from which the training of a checkpoint began; all empty: new weights.
struct Origin {
  std::string path, hash;                    ///< ModelFolder::absolute_path() and hash()
  /// Adapters on that model from which training continued.
  std::string adapters_path, adapters_hash;

  static Origin from_json(const Json& value);
  Json to_json() const;  ///< null if it began from new weights
};

/// The use of facts. Generation needs them all.
enum class FactsFor { generation, training };

struct ModelFacts {
  std::optional<TokenizerConfig> tokenizer;
  std::optional<text::EncoderConfig> text_encoder;  ///< none: trained without text
  std::optional<LatentScale> scale;  ///< normalisation of its latents; none for codes
  Extents largest;  ///< in latents: the largest that it was trained on; height 0: not known
  Extents usual;    ///< in latents: the size of most videos (of stills without videos)
  double fps = 0;   ///< frames per second of most videos; 0: not known
  SamplingFacts sampling;
  /// Of a model with two networks: the lowest noise level of the first one. Below it the second is
  /// used.
  std::optional<double> boundary;
  int networks() const { return boundary ? 2 : 1; }
  /// Prompts are padded to this number of tokens with zero vectors, which are attended to, as
  /// Cosmos was trained; 0: no padding.
  int text_padding = 0;
  /// A prompt without text goes through the encoder, which gives it an end token. If false, it is
  /// one zero vector, as a sample whose text was dropped in training.
  bool encode_empty = true;
  /// The model was trained with given frames of noise level 0 (GivenFramesBy::clean_time).
  bool clean_time = false;
  /// The time input is rounded to bf16, as in the network's training. Of a pipeline: if the network
  /// computes in bf16.
  bool round_time = false;
  /// A guidance up to this value is none to the pipeline; 0: as here.
  double no_guidance = 0;

  // Only for a checkpoint:
  std::optional<std::int64_t> step;
  std::optional<std::uint64_t> seed;
  DType trained_in = DType::f32;
  Origin origin;

  /// Reads a train.json, named `what` in messages. Throws Error for impossible values, and for
  /// generation also for missing ones. "sampling", "text_padding" and "encode_empty" are there only
  /// if the run began from a model that has them.
  static ModelFacts from_json(const Json& train, const std::string& what,
                              FactsFor use = FactsFor::generation);
};

/// The facts of a folder. A part of a pipeline by itself has only facts from its network. Reads no
/// weights. For generation throws Error{usage} for a pipeline with unsupported parts, and names the
/// supported ones. For training some parts may be missing.
ModelFacts read_facts(const ModelFolder& model, FactsFor use = FactsFor::generation);

/// Writes facts into `json`, the config.json of an export of `model`, if they differ from what
/// read_facts() assumes for published models: "process", "text_padding", a number of tokens, and
/// "encode_empty", false. diffusers ignores them with a warning.
void tell_of_training(const ModelFacts& facts, const ModelConfig& model, Json& json);

/// Reads scheduler_config.json in `folder`: an EDMEulerScheduler, or for flow matching a
/// FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler or DPMSolverMultistepScheduler. Values
/// that it does not have are those of the pipeline, or of a scheduler of diffusers if the pipeline
/// has PipelineForm::in_diffusers. Throws Error{usage} for a scheduler that the pipeline does not
/// have, for unsupported settings (the message lists the supported ones), and for values of another
/// type or with which nothing can be sampled.
SamplingFacts hf_sampling(const std::string& folder, const PipelineForm& pipeline);
/// Returns how a pipeline of flow matching is sampled by unipc, where no scheduler says how.
SamplingFacts usual_sampling(const PipelineForm& pipeline);
/// Returns the scheduler_config.json of a model with this sampling, which hf_sampling() reads so
/// again. Its "_class_name" is one of these four. For a pipeline with a reference it also has
/// "reference_shift", null if the model has none; diffusers ignores that.
Json hf_scheduler(const SamplingFacts& sampling, const PipelineForm& pipeline);

/// A hash of 32 hex digits over everything that decides the model's output, with all parts of a
/// pipeline.
std::string hash_all(const ModelFolder& model);

/// Adds the hashes of tokenizer and text encoder, so that other folders can be compared with them.
/// Reads their weights.
void add_part_hashes(ModelFacts& facts);

/// The hash that add_part_hashes() adds for a text encoder. Throws Error{usage} if there is none.
std::string text_encoder_hash(const std::string& folder);

}  // namespace vfm::models
