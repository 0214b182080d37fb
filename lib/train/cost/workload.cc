// SPDX-License-Identifier: Apache-2.0
#include "train/cost/workload.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "train/cost/memory.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

constexpr int kUsualText = 512;  // tokens of a T5 caption in Cosmos, without data

/// What estimates are of: all samples, or of many the first blocks of the first epoch, which are as
/// mixed as all.
struct Sampled {
  std::vector<std::uint64_t> samples;
  std::vector<data::Pack> packs;  ///< of places in `samples`

  double samples_a_pack() const {
    return static_cast<double>(samples.size()) / static_cast<double>(packs.size());
  }
};

Sampled sampled(const Recipe& recipe, const Dataset& data) {
  const data::PackingOptions options = recipe.data.pack_options();
  Sampled some;
  if (data.size() <= kLookedAt && data.sources().empty()) {
    some.samples.resize(data.size());
    std::iota(some.samples.begin(), some.samples.end(), std::uint64_t{0});
    some.packs = data::plan_packs(data.tokens(recipe.model, kLookedAt), options);
    return some;
  }
  const std::unique_ptr<data::EpochOrder> order = data.order(recipe.train.seed, options.packing);
  const std::uint64_t blocks = std::min(order->blocks(), kLookedAt / data::kBlock);
  for (std::uint64_t block = 0; block < blocks; ++block)
    for (const data::Pack& pack :
         data::block_packs(*order, data.lengths(recipe.model), options, 0, block)) {
      data::Pack& places = some.packs.emplace_back();
      for (const std::size_t i : pack) {
        places.push_back(some.samples.size());
        some.samples.push_back(i);
      }
    }
  return some;
}

/// The first sample of fewest tokens.
data::Entry shortest_sample(const Recipe& recipe, const Dataset& data) {
  std::uint64_t shortest = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const data::Form& form : data.index().forms())
    if (const auto tokens = token_count(data.sizes(form.first), recipe.model); tokens < least)
      least = tokens, shortest = form.first;
  data::Entry sample = data.sizes(shortest);
  sample.key = data.index().name(shortest);
  return sample;
}

}  // namespace

Workload measure(const Recipe& recipe, const Dataset& data) {
  const Sampled some = sampled(recipe, data);
  SampleFlops flops(recipe);
  Workload load;
  std::vector<double> of_sample;
  for (const std::uint64_t i : some.samples) {
    const data::Entry sample = data.sizes(i);
    load.tokens_a_step += static_cast<double>(token_count(sample, recipe.model));
    of_sample.push_back(flops.of(sample));
    load.flops_a_step += of_sample.back();
  }
  for (const data::Pack& pack : some.packs) {
    load.pack_flops.push_back(0);
    for (const std::size_t place : pack)
      load.pack_flops.back() += of_sample[place];
  }
  const auto packs = static_cast<double>(some.packs.size());
  const double steps = packs / recipe.data.packs;
  load.pack = fullest_pack(recipe, data);
  for (const data::Entry& sample : load.pack)
    load.fullest_flops += flops.of(sample);
  load.shortest = shortest_sample(recipe, data);
  load.fill = load.tokens_a_step / (packs * static_cast<double>(recipe.data.tokens));
  load.samples_a_step = static_cast<double>(some.samples.size()) / steps;
  load.tokens_a_step /= steps;
  load.flops_a_step /= steps;
  load.source =
      fmt::format("{}, {:.1f} % of the packs filled",
                  counted(static_cast<std::int64_t>(data.size()), "sample"), 100 * load.fill);
  return load;
}

double time_reading(const Recipe& recipe, const Dataset& data) {
  constexpr double kEnough = 0.5;  // seconds
  const Sampled some = sampled(recipe, data);
  const auto begin = std::chrono::steady_clock::now();
  double seconds = 0, samples = 0;
  const double of_step = some.samples_a_pack() * recipe.data.packs;
  for (const data::Pack& pack : some.packs)
    for (const std::size_t place : pack) {
      try {
        static_cast<void>(data.read(some.samples[place], SeenAt{}));
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
  load.source = fmt::format("none given: one sample of {} a pack, {}", counted(tokens, "token"),
                            counted(sample.text_tokens, "text token"));
  return load;
}

}  // namespace vfm::train
