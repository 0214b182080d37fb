// SPDX-License-Identifier: Apache-2.0
#include "train/workload.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "train/kind.h"
#include "train/memory.h"

namespace vfm::train {
namespace {

constexpr int kUsualText = 512;  // tokens of a T5 caption in Cosmos, without data

double mean_samples(const std::vector<data::Pack>& packs) {
  std::size_t samples = 0;
  for (const data::Pack& pack : packs)
    samples += pack.size();
  return static_cast<double>(samples) / static_cast<double>(packs.size());
}

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

double time_reading(const Recipe& recipe, const Dataset& data) {
  constexpr double kEnough = 0.5;  // seconds
  const std::vector<data::Pack> packs =
      data::plan_packs(data.tokens(recipe.model), recipe.data.pack_options());
  const auto begin = std::chrono::steady_clock::now();
  double seconds = 0, samples = 0;
  const double of_step = mean_samples(packs) * recipe.data.packs;
  for (const data::Pack& pack : packs)
    for (const std::size_t i : pack) {
      try {
        static_cast<void>(data.read(i, 0U));
        ++samples;
      } catch (const Error&) {  // a run goes on without it, and says so
      }
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (seconds > kEnough) return seconds / std::max(1.0, samples) * of_step;
    }
  return seconds / std::max(1.0, samples) * of_step;
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
