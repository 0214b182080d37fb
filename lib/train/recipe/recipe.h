// The recipe: everything that decides a training run besides the data (vfm-recipe(5)).
//
// Plain structs with documented fields. recipe_file.h fills them from YAML and the command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "models/cosmos/config.h"
#include "models/decoder/decoder.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"
#include "train/codes/recipe.h"
#include "train/diffusion/recipe.h"
#include "train/recipe/data_recipe.h"
#include "train/tokenizer/recipe.h"

namespace vfm::train {

using dist::ShardKind;

struct ModelRecipe {
  /// Type of the model: one of Kind::types(). Diffusion networks are those of
  /// models/dit/architecture.h. A decoder (models/decoder/decoder.h) models discrete latents, and a
  /// tokenizer (models/cosmos/autoencoder.h) pixels.
  std::string type = "dit";
  /// The diffusion network. A field that is 0 here is set from the data.
  models::NetworkConfig dit = {.in_channels = 0, .out_channels = 0, .text_embed_dim = 0};
  /// Whether the network is that of a model to begin from; then a 0 in it is final.
  bool begun = false;
  /// The autoregressive decoder. A field that is 0 here is set from the data.
  models::DecoderConfig decoder = {.vocabulary = 0};
  /// The tokenizer. It is discrete if it has levels.
  models::CosmosConfig autoencoder;
  std::string compute = "f32";  ///< "f32" or "bf16": matrix products and activations
  /// What backward recomputes to save memory: "none", "elementwise", "block_but_attention",
  /// "block", or "auto", the least that fits the device's memory.
  std::string recompute = "auto";
  /// On a GPU: inputs of recomputed blocks are kept in the host's memory.
  bool offload = false;

  bool offloads(nn::Recompute chosen) const { return nn::kept_of(chosen, offload).offload; }
};

struct OptimizerRecipe {
  std::string kind = "adamw";  ///< the name of one of train/state/optimizer_kinds.h
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double momentum = 0.95;  ///< of Muon
  double eps = 1e-8;
  double weight_decay = 0.1;    ///< decoupled; not for norms and position tables
  std::string moments = "f32";  ///< "f32", "bf16" or "8bit": type of the two moments
  double clip = 1.0;            ///< largest global gradient norm; 0: no clipping
  int max_skips = 10;  ///< consecutive steps with a non-finite gradient after which the run ends

  DType moment_type() const;  ///< of moments that are not in 8 bits
};

struct ScheduleRecipe {
  std::int64_t warmup = 1000;      ///< steps of linear warm-up
  /// Shape after warm-up: "constant", "linear" or "cosine" down to final*lr.
  std::string shape = "constant";
  double final = 0.0;              ///< fraction of lr at the last step
};

struct EmaRecipe {
  std::string mode = "decay";    ///< "off", "decay", or "power" (Karras et al. 2024)
  double decay = 0.999;          ///< for "decay"; approached as (1+n)/(10+n)
  double length = 0.1;           ///< for "power": relative standard deviation of the average
  std::string place = "device";  ///< "device" or "host": memory that keeps the average
  int every = 1;                 ///< updates between changes of the average
};

struct ValidationRecipe {
  std::int64_t every = 500;  ///< steps between validations; 0: none
  int samples = 64;          ///< samples of the split that are used
  std::vector<double> sigmas = {0.1, 0.3, 1, 3, 10};
};

struct TrainRecipe {
  std::int64_t steps = 10000;
  std::uint64_t seed = 0;
  std::int64_t checkpoint_every = 500;
  double checkpoint_minutes = 0;  ///< most between checkpoints; 0: as long as the steps take
  int keep = 2;                   ///< newest checkpoints to keep
  std::int64_t keep_every = 0;    ///< checkpoints of multiples of so many steps stay; 0: none
  std::int64_t log_every = 10;
  /// Steps between comparisons of what ranks should have the same (train/state/replicas.h); 0:
  /// none.
  std::int64_t compare_every = 500;
  /// How far loss or gradient norm may be above their last medians (train/step/recent_steps.h); 0:
  /// any number of times.
  double skip_spikes = 0;
  /// Seconds that a rank waits for others before the run ends (dist/world.h); 0: without limit.
  double setup_limit = 1800, step_limit = 600, checkpoint_limit = 1800;
  double silent_limit = 10;  ///< seconds until a silent rank ends the run; 0: never
  /// Peak of one rank's hardware, for MFU in timing.jsonl. 0: that of a known GPU, else no MFU.
  double peak_tflops = 0;
};

struct Recipe {
  ModelRecipe model;
  /// With a rank above 0, only adapters of the model that the run begins from are trained.
  models::LoraOptions lora;
  DiffusionRecipe diffusion;
  SamplingRecipe sampling;
  AutoregressiveRecipe autoregressive;
  TokenizerRecipe tokenizer;
  DataRecipe data;
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  EmaRecipe ema;
  ValidationRecipe validation;
  dist::Layout parallel;  ///< how the ranks of a run share its work; dp is open
  TrainRecipe train;
  std::set<std::string> given;  ///< keys that the user set, for describe_setting()

  DType compute() const;
  /// Packs of a rank that go through the network together; 0: all. In a pipeline 1, unless
  /// 'data.micro_packs' is set.
  int packs_together() const;
  /// Probability that a sample is trained without its text.
  double text_dropout() const;
  /// Tokens to which texts are padded; 0: not padded.
  int text_padding() const;
  /// False if the model has no text, as one that the run begins from may.
  bool takes_text() const;
  /// Tokens in the model of a text of `of_sample` tokens, with padding; at least 1.
  int text_tokens(int of_sample) const;
};

/// Sets 'diffusion.process'. If it changes, the noise levels of training and validation get the
/// defaults of the new process.
void set_process(Recipe& recipe, models::Process process);

}  // namespace vfm::train
