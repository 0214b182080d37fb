// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "models/dit.h"
#include "train/dataset.h"
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
  const models::DitConfig& dit = recipe.model.dit;
  const std::vector<std::int64_t> tokens = data.tokens(dit);
  const std::vector<data::Pack> packs = data::plan_packs(tokens, options);
  Workload load;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double length = static_cast<double>(tokens[i]);
    load.tokens_a_step += length;
    load.flops_a_step +=
        length * models::dit_cost(dit, length, std::max(1, data.entry(i).text_tokens),
                                  static_cast<double>(recipe.data.tokens), recipe.compute(),
                                  recipe.model.recompute)
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
  Workload load;
  load.samples_a_step = recipe.data.packs;
  load.tokens_a_step = tokens * recipe.data.packs;
  load.flops_a_step =
      load.tokens_a_step * models::dit_cost(recipe.model.dit, tokens, kUsualText, tokens,
                                            recipe.compute(), recipe.model.recompute)
                               .flops_per_token;
  load.source = fmt::format("none given: one sample of {} tokens a pack, {} text tokens",
                            recipe.data.tokens, kUsualText);
  return load;
}

}  // namespace

std::string describe(Recipe recipe, const std::string& data, int ranks) {
  models::DitConfig& dit = recipe.model.dit;
  Workload load;
  if (!data.empty()) {
    const Dataset set(data, "train", recipe.diffusion.whitening);
    set.fit(recipe);
    load = measure(recipe, set);
  } else {
    if (dit.in_channels == 0 || dit.text_embed_dim == 0)
      fail_usage("'model.{}' comes from the data: give --data DIR, or set it",
                 dit.in_channels == 0 ? "in_channels" : "text_embed_dim");
    if (dit.out_channels == 0) dit.out_channels = dit.in_channels;
    dit.validate();
    load = assume(recipe);
  }
  // A rank's packs of a step go through the network together, or micro_packs at a time.
  const int share = (recipe.data.packs + ranks - 1) / ranks;
  const int together =
      recipe.data.micro_packs > 0 ? std::min(recipe.data.micro_packs, share) : share;
  const double pack_tokens = static_cast<double>(recipe.data.tokens) * together;
  const models::DitCost cost =
      models::dit_cost(dit, load.tokens_a_step / load.samples_a_step, 1, pack_tokens,
                       recipe.compute(), recipe.model.recompute);
  const double parameters = static_cast<double>(cost.parameters);
  const double state = 4 * parameters * (recipe.ema.mode == "off" ? 4 : 5);
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<22} {}\n", name, value);
  };
  line("data", load.source);
  line("parameters", fmt::format("{} ({})", cost.parameters, format_count(parameters)));
  line("ranks", fmt::format("{}", ranks));
  line("samples per step", fmt::format("{:.1f}", load.samples_a_step));
  line("tokens per step", fmt::format("{:.0f}", load.tokens_a_step));
  line("steps", fmt::format("{}", recipe.train.steps));
  line("FLOPs per step", format_count(load.flops_a_step));
  line("FLOPs of the run",
       format_count(load.flops_a_step * static_cast<double>(recipe.train.steps)));
  line("memory per rank", format_bytes(state + cost.activation_bytes));
  line("  weights", format_bytes(4 * parameters));
  line("  gradients", format_bytes(4 * parameters));
  line("  moments", format_bytes(8 * parameters));
  if (recipe.ema.mode != "off") line("  average (ema)", format_bytes(4 * parameters));
  line("  activations", format_bytes(cost.activation_bytes));
  line("checkpoint", format_bytes(state - 4 * parameters));
  return text;
}

}  // namespace vfm::train
