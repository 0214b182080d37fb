// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "tensor/device.h"
#include "train/dataset.h"
#include "train/memory.h"
#include "train/order.h"
#include "train/run.h"

namespace vfm::train {
namespace {

constexpr int kUsualText = 512;  // tokens of a T5 caption in Cosmos, where no data tell

/// Means over one epoch, or what stands for them.
struct Workload {
  double samples_a_step = 0, tokens_a_step = 0, flops_a_step = 0, fill = 1;
  std::string source;
};

Workload measure(const Recipe& recipe, const Dataset& data) {
  data::PackOptions options;
  options.tokens = recipe.data.tokens;
  options.window = recipe.data.window;
  const std::vector<std::int64_t> tokens = data.tokens(recipe.model);
  const std::vector<data::Pack> packs = data::plan_packs(tokens, options);
  Workload load;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double length = static_cast<double>(tokens[i]);
    load.tokens_a_step += length;
    load.flops_a_step +=
        length * model_cost(recipe, length, recipe.text_tokens(data.entry(i).text_tokens),
                            static_cast<double>(recipe.data.tokens), models::Recompute::none)
                     .flops_per_token;
  }
  const double steps = static_cast<double>(packs.size()) / recipe.data.packs;
  load.fill = data::pack_stats(tokens, packs, options).fill;
  load.samples_a_step = static_cast<double>(tokens.size()) / steps;
  load.tokens_a_step /= steps;
  load.flops_a_step /= steps;
  load.source =
      fmt::format("{} samples, {:.1f} % of the packs filled", tokens.size(), 100 * load.fill);
  return load;
}

Workload assume(const Recipe& recipe) {
  const double tokens = static_cast<double>(recipe.data.tokens);
  const int text = recipe.text_tokens(kUsualText);
  Workload load;
  load.samples_a_step = recipe.data.packs;
  load.tokens_a_step = tokens * recipe.data.packs;
  load.flops_a_step =
      load.tokens_a_step *
      model_cost(recipe, tokens, text, tokens, models::Recompute::none).flops_per_token;
  load.source = fmt::format("none given: one sample of {} tokens a pack, {} text tokens",
                            recipe.data.tokens, text);
  return load;
}

/// What the data would say must be in the recipe.
void complete_without_data(Recipe& recipe) {
  ModelRecipe& model = recipe.model;
  const auto need = [](int value, const char* field) {
    if (value == 0) fail_usage("'model.{}' comes from the data: give --data DIR, or set it", field);
  };
  if (model.autoregressive()) {
    need(model.decoder.vocabulary, "vocabulary");
    return model.decoder.validate();
  }
  need(model.dit.in_channels, "in_channels");
  need(model.dit.text_embed_dim, "text_embed_dim");
  if (model.dit.out_channels == 0)
    model.dit.out_channels = model.dit.in_channels - (recipe.diffusion.video_to_world() ? 1 : 0);
  model.dit.validate();
}

}  // namespace

Dataset open_data(const RunOptions& options, const std::string& split) {
  if (options.synthetic.empty())
    return Dataset(options.data, split, options.recipe.diffusion.whitening);
  if (options.recipe.model.autoregressive())
    fail_usage("there are no made-up codes: --synthetic is for diffusion models");
  const models::DitConfig& dit = options.recipe.model.dit;
  Synthetic synthetic;
  synthetic.sizes = options.synthetic;
  if (dit.in_channels > 0)
    synthetic.channels = dit.in_channels - (options.recipe.diffusion.video_to_world() ? 1 : 0);
  if (dit.out_channels > 0) synthetic.channels = dit.out_channels;
  if (dit.text_embed_dim > 0) synthetic.text_width = dit.text_embed_dim;
  return Dataset(synthetic);
}

std::string describe(const RunOptions& options, int ranks) {
  Recipe recipe = options.recipe;
  Workload load;
  if (!options.data.empty() || !options.synthetic.empty()) {
    const Dataset set = open_data(options, "train");
    set.fit(recipe);
    load = measure(recipe, set);
  } else {
    complete_without_data(recipe);
    load = assume(recipe);
  }
  const double usable = usable_memory(options.device, ranks);
  const models::Recompute recompute = choose_recompute(recipe, ranks, options.device, usable);
  const MemoryNeed need = memory_need(recipe, ranks, recompute, options.device);
  const std::int64_t count = model_cost(recipe, 1, 1, 1, recompute).parameters;
  const std::int64_t trained = trained_parameters(recipe);
  const double parameters = static_cast<double>(count), learnt = static_cast<double>(trained);
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<22} {}\n", name, value);
  };
  line("data", load.source);
  line("device", options.device == Device::cuda ? describe_gpu() : "the CPU");
  if (!options.init.empty()) line("begins from", options.init);
  line("parameters", fmt::format("{} ({})", count, format_count(parameters)));
  if (recipe.lora.rank > 0)
    line("  trained", fmt::format("{} ({}), adapters of rank {}; the others are frozen", trained,
                                  format_count(learnt), recipe.lora.rank));
  line("ranks", fmt::format("{}", ranks));
  line("samples per step", fmt::format("{:.1f}", load.samples_a_step));
  line("tokens per step", fmt::format("{:.0f}", load.tokens_a_step));
  line("steps", fmt::format("{}", recipe.train.steps));
  line("FLOPs per step", format_count(load.flops_a_step));
  line("FLOPs of the run",
       format_count(load.flops_a_step * static_cast<double>(recipe.train.steps)));
  line("memory per rank",
       fmt::format("{} ({} usable)", format_bytes(need.total()), format_bytes(usable)));
  line("  weights", format_bytes(need.weights));
  line("  gradients", format_bytes(need.gradients));
  line("  moments", format_bytes(need.moments));
  if (need.average > 0) line("  average (ema)", format_bytes(need.average));
  line("  activations", fmt::format("{} (recompute {})", format_bytes(need.activations),
                                    models::recompute_name(recompute)));
  const double average = recipe.ema.mode == "off" ? 0 : 4 * learnt;
  line("checkpoint", format_bytes(4 * learnt + need.moments + average));
  return text;
}

}  // namespace vfm::train
