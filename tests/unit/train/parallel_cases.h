// Trainings on several ranks, of small networks of each type, for the tests of their proof.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "dist/threads.h"
#include "latents_fixture.h"
#include "train/check/check_parallel.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"

namespace vfm {

/// What a step has, if not of codes: 9, 18 and 5 tokens a sample; 36; or single frames of 9 and 4.
enum class Samples { mixed, one_a_pack, images };

struct ParallelCase {
  std::string type = "dit";
  int ranks = 2;
  std::string settings;  ///< YAML: the layout, and what is not as in every case
  Samples samples = Samples::mixed;
  int adapters = 0;  ///< their rank
};

inline train::Recipe recipe_of(const ParallelCase& one) {
  const bool codes = one.type == "autoregressive", keys = codes || one.type == "moviegen";
  const char* const sizes =
      one.type == "wan" ? "num_attention_heads: 4, ffn_dim: 24, freq_dim: 16, "
      : keys            ? "num_attention_heads: 8, num_key_value_heads: 4, mlp_ratio: 2, "
                        : "num_attention_heads: 4, adaln_lora_dim: 4, mlp_ratio: 2, ";
  auto settings = train::parse_yaml(
      "model: {type: " + one.type + ", attention_head_dim: 12, " + sizes +
          (codes || one.type == "wan" ? "" : "max_size: [5, 8, 8], ") +
          "num_layers: 1, recompute: none}\n"
          "data: {tokens: 40, packs: 2, window: 8}\n" +
          (codes ? "autoregressive" : "diffusion") + ": {text_dropout: 0}\nema: {mode: off}\n",
      "case");
  for (const auto& setting : train::parse_yaml(one.settings, "more"))
    settings.push_back(setting);
  train::Recipe recipe = train::make_recipe(settings);
  recipe.lora.rank = one.adapters;
  return recipe;
}

inline std::unique_ptr<train::Dataset> samples_of(const ParallelCase& one) {
  if (one.type == "autoregressive") {
    static const TemporaryFolder folder;
    if (std::filesystem::is_empty(folder.path)) write_latents(folder.path, {.vocabulary = 23});
    return train::kind_of(one.type).open({.recipe = recipe_of(one), .data = folder.path}, "train");
  }
  train::MadeUpLatents made;
  switch (one.samples) {
    case Samples::mixed:
      made.sizes = {{1, 6, 6}, {2, 6, 6}, {5, 2, 2}};
      break;
    case Samples::one_a_pack:
      made.sizes = {{4, 6, 6}};
      break;
    case Samples::images:
      made.sizes = {{1, 6, 6}, {1, 4, 4}};
  }
  made.channels = 3;
  made.text_tokens = 3;
  made.text_width = 8;
  return train::make_up_latents(made);
}

/// The check as rank 0 has it. Each rank computes on one thread, with the world and the data that
/// the functions make of its own.
using MakeWorld = std::function<std::unique_ptr<dist::World>(dist::World&)>;
using MakeData = std::function<std::unique_ptr<train::Dataset>(const train::Dataset&, int rank)>;
inline train::ParallelCheck check_case(const ParallelCase& one, const MakeWorld& make_world = {},
                                       const MakeData& make_data = {},
                                       const train::AfterStep& after = {}) {
  train::RunOptions options;
  options.recipe = recipe_of(one);
  if (!options.recipe.given.contains("ema.decay")) options.recipe.ema = {};
  const auto data = samples_of(one);
  train::ParallelCheck check;
  dist::thread_worlds(one.ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    const auto other_world = make_world ? make_world(world) : nullptr;
    const auto other_data = make_data ? make_data(*data, world.rank()) : nullptr;
    train::ParallelCheck own = train::check_parallel(options, other_data ? *other_data : *data,
                                                     other_world ? *other_world : world, after);
    if (world.rank() == 0) check = std::move(own);
  });
  return check;
}

}  // namespace vfm
