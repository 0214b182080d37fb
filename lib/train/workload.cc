// SPDX-License-Identifier: Apache-2.0
#include "train/workload.h"

#include <algorithm>

#include "base/error.h"
#include "train/kind.h"
#include "train/memory.h"

namespace vfm::train {
namespace {

constexpr int kUsualText = 512;  // tokens of a T5 caption in Cosmos, without data

}  // namespace

Workload measure(const Recipe& recipe, const Dataset& data) {
  const data::PackOptions options = recipe.data.pack_options();
  const std::vector<std::int64_t> tokens = data.tokens(recipe.model);
  const std::vector<data::Pack> packs = data::plan_packs(tokens, options);
  SampleFlops flops(recipe);
  Workload load;
  std::vector<double> of_sample;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    load.tokens_a_step += static_cast<double>(tokens[i]);
    of_sample.push_back(flops.of(data.entry(i)));
    load.flops_a_step += of_sample.back();
  }
  for (const data::Pack& pack : packs) {
    load.pack_flops.push_back(0);
    for (const std::size_t i : pack)
      load.pack_flops.back() += of_sample[i];
  }
  const double steps = static_cast<double>(packs.size()) / recipe.data.packs;
  load.pack = fullest_pack(recipe, data);
  for (const data::Entry& sample : load.pack)
    load.fullest_flops += flops.of(sample);
  const auto least = std::ranges::min_element(tokens) - tokens.begin();
  load.shortest = data.entry(static_cast<std::size_t>(least));
  load.fill = data::pack_stats(tokens, packs, options).fill;
  load.samples_a_step = static_cast<double>(tokens.size()) / steps;
  load.tokens_a_step /= steps;
  load.flops_a_step /= steps;
  load.source =
      fmt::format("{} samples, {:.1f} % of the packs filled", tokens.size(), 100 * load.fill);
  return load;
}

Workload assume(const Recipe& recipe) {
  data::Entry sample = kind_of(recipe.model.type).full_sample(recipe);
  sample.text_tokens = recipe.text_tokens(kUsualText);
  const std::int64_t tokens = token_count(sample, recipe.model);
  Workload load;
  load.samples_a_step = recipe.data.packs;
  load.pack = {sample};
  load.shortest = sample;
  load.tokens_a_step = static_cast<double>(tokens) * recipe.data.packs;
  load.fullest_flops = SampleFlops(recipe).of(sample);
  load.flops_a_step = load.fullest_flops * recipe.data.packs;
  load.pack_flops = {load.fullest_flops};
  load.source = fmt::format("none given: one sample of {} tokens a pack, {} text tokens", tokens,
                            sample.text_tokens);
  return load;
}

}  // namespace vfm::train
