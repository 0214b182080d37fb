// The recipe: everything that decides a training run besides the data (vfm-train(1)).
//
// A plain struct with documented fields, filled from YAML and from "section.key=value" on the
// command line, later ones winning. An unknown key, a wrong type or a value out of range is
// Error{usage}, with the key, where it stands, and the nearest known key or the allowed range.
// Thread-safety: values and free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/network.h"

namespace vfm::train {

struct ModelRecipe {
  /// Which model: a diffusion network, "dit" (models/dit.h), "stdit" (models/stdit.h) or
  /// "moviegen" (models/moviegen.h).
  std::string type = "dit";
  /// The diffusion transformer. in_channels, out_channels and text_embed_dim are 0 in a recipe that
  /// takes them from the data.
  models::DitConfig dit;
  std::string compute = "f32";  ///< "f32" or "bf16": matrix products and activations
  /// What backward computes again to save memory: "none", "elementwise", "block", or "auto": the
  /// least that fits the device's memory.
  std::string recompute = "auto";
};

struct DiffusionRecipe {
  double p_mean = 0.0, p_std = 1.0;             ///< ln sigma ~ N(p_mean, p_std^2), per sample
  double sigma_min = 0.0002, sigma_max = 80.0;  ///< sigma is clamped to these
  double whitening = 1.0;     ///< 1: every latent channel alike; 0: as the tokenizer scales them
  double loss_scale = 1.0;    ///< factor on loss and gradients (Cosmos: 10)
  double text_dropout = 0.1;  ///< how often a sample is trained without its text
  bool scale_video_noise = false;  ///< sigma of a video times sqrt(latent frames), as predict2
};

struct DataRecipe {
  std::int64_t tokens = 8192;  ///< capacity of a pack
  int packs = 1;               ///< packs a step, over all ranks
  int window = 64;             ///< samples that packing looks at
  int micro_packs = 0;         ///< packs that a rank puts into one forward; 0: all of its step
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
  /// Of the hardware of one rank, for MFU in timing.jsonl. 0: a known GPU's, else no MFU.
  double peak_tflops = 0;
};

struct Recipe {
  ModelRecipe model;
  DiffusionRecipe diffusion;
  DataRecipe data;
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  EmaRecipe ema;
  ValidationRecipe validation;
  TrainRecipe train;

  DType compute() const;
};

/// One value that somebody set: "optimizer.lr" to "2e-3". A list has several values.
struct Setting {
  std::string key;
  std::vector<std::string> values;
  bool list = false;
  std::string where;  ///< for messages: "line 3 of 'a.yaml'", "argument 'optimizer.lr=2e-3'"
};

/// YAML text as settings, in its order. Throws Error{usage} on what is not YAML, too deep, or a key
/// twice. `what` names the text in errors. Pure; fuzzed.
std::vector<Setting> parse_yaml(std::string_view text, std::string_view what);
/// "key=value" as a setting; value is YAML ("[0.1, 1]" is a list).
Setting parse_override(std::string_view argument);

/// Applies the settings in order to the defaults, and checks the result. With `initial` the run
/// begins from a model of that configuration: it takes the defaults' place, and a setting that says
/// otherwise is an error; all of them are listed.
Recipe make_recipe(std::span<const Setting> settings, const models::DitConfig* initial = nullptr);
/// make_recipe of a file and overrides.
Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides,
                   const models::DitConfig* initial = nullptr);

/// Every field, by section, as YAML that load_recipe reads back to the same recipe.
std::string to_yaml(const Recipe& recipe);
/// The same as {"section":{"key":value}}.
Json to_json(const Recipe& recipe);

/// What differs between the recipe of a checkpoint (to_json) and this one, as "key: old -> new",
/// except fields that may change in the middle of a run (lengths, intervals, how memory is used).
std::vector<std::string> changed_settings(const Json& old, const Recipe& now);

}  // namespace vfm::train
