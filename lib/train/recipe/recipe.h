// The recipe: everything that decides a training run besides the data (vfm-recipe(5)).
//
// Plain structs with documented fields; recipe_file.h fills them from YAML and the command line.
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
#include "train/recipe/parallel_recipe.h"
#include "train/tokenizer/recipe.h"

namespace vfm::train {

struct ModelRecipe {
  /// Which model: a diffusion network, "dit" (models/dit/dit.h), "stdit" (models/dit/stdit.h) or
  /// "moviegen" (models/dit/moviegen.h); "autoregressive" (models/decoder/decoder.h), of discrete
  /// latents; or "tokenizer" (models/cosmos/autoencoder.h), of pixels.
  std::string type = "dit";
  /// The diffusion network. What is 0 here comes from the data.
  models::NetworkConfig dit = {.in_channels = 0, .out_channels = 0, .text_embed_dim = 0};
  /// Its modulation: by two matrices of a low rank, "lora", or by one, "full"; then its
  /// adaln_lora_dim is 0. Not of moviegen.
  std::string adaln = "lora";
  /// That of a model that the run begins from: what is 0 in it is so.
  bool begun = false;
  /// The autoregressive decoder. What is 0 here comes from the data.
  models::DecoderConfig decoder = {.vocabulary = 0};
  /// The tokenizer. With levels it is discrete.
  models::CosmosConfig autoencoder;
  std::string compute = "f32";  ///< "f32" or "bf16": matrix products and activations
  /// What backward recomputes to save memory: "none", "elementwise", "block", or "auto": the least
  /// that fits the device's memory.
  std::string recompute = "auto";
  /// What goes into whole blocks that are recomputed waits in the host's memory; on a GPU.
  bool offload = false;

  bool offloads(models::Recompute chosen) const { return models::kept_of(chosen, offload).offload; }
};

struct OptimizerRecipe {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.1;    ///< decoupled; not for norms and position tables
  std::string moments = "f32";  ///< "f32" or "bf16": how the two moments are kept
  double clip = 1.0;            ///< largest global gradient norm; 0: no clipping
  int max_skips = 10;           ///< steps in a row with a non-finite gradient before giving up

  DType moment_type() const;
};

struct ScheduleRecipe {
  std::int64_t warmup = 1000;      ///< steps of linear warm-up
  std::string shape = "constant";  ///< after it: "constant", "linear" or "cosine" down to final*lr
  double final = 0.0;              ///< fraction of lr at the last step
};

struct EmaRecipe {
  std::string mode = "decay";    ///< "off", "decay", or "power" (Karras et al. 2024)
  double decay = 0.999;          ///< of "decay", approached as (1+n)/(10+n)
  double length = 0.1;           ///< of "power": relative standard deviation of the average
  std::string place = "device";  ///< "device" or "host": whose memory keeps it
  int every = 1;                 ///< updates from one change of the average to the next
};

struct ValidationRecipe {
  std::int64_t every = 500;  ///< steps between validations; 0: none
  int samples = 64;          ///< how many samples of the split
  std::vector<double> sigmas = {0.1, 0.3, 1, 3, 10};
};

struct TrainRecipe {
  std::int64_t steps = 10000;
  std::uint64_t seed = 0;
  std::int64_t checkpoint_every = 500;
  int keep = 2;  ///< checkpoints that stay
  std::int64_t log_every = 10;
  /// Seconds a rank waits for others before the run ends (dist/world.h); 0: for ever.
  double setup_limit = 1800, step_limit = 600, checkpoint_limit = 1800;
  /// Of the hardware of one rank, for MFU in timing.jsonl. 0: a known GPU's, else no MFU.
  double peak_tflops = 0;
};

struct Recipe {
  ModelRecipe model;
  /// With a rank, only adapters of the model that the run begins from are trained.
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
  ParallelRecipe parallel;
  TrainRecipe train;
  std::set<std::string> given;  ///< keys that the user set, for describe_setting()

  DType compute() const;
  /// Packs of a rank that go through the network together; 0: all. Those of a pipeline go one by
  /// one, if 'data.micro_packs' does not say otherwise.
  int packs_together() const;
  /// How often a sample is trained without its text.
  double text_dropout() const;
  /// What texts are filled up to; 0: they are not.
  int text_padding() const;
  /// Whether the model reads texts: one that the run begins from may have none.
  bool takes_text() const;
  /// Of a text as it goes into the model; that of no text is 1.
  int text_tokens(int of_sample) const;
};

}  // namespace vfm::train
