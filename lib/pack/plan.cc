// SPDX-License-Identifier: Apache-2.0
#include "pack/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "data/order.h"

namespace vfm::pack {
namespace {

constexpr std::size_t kShownPacks = 20;

class Planner {
 public:
  explicit Planner(const PlanOptions& options)
      : options_(options), set_(options.directory, options.split), tally_(options.packs.tokens) {
    const data::SampleIndex& index = set_.index();
    for (const data::Form& form : index.forms()) {
      const std::int64_t length = data::token_count(index.sizes(form.first), options.patch);
      tokens_of_form_.push_back(length);
      if (length < 1)
        fail_usage("sample '{}' is smaller than one token: give a smaller --patch",
                   index.name(form.first));
      if (length > options.packs.tokens)
        fail_usage("sample '{}' has {} tokens, more than a pack's {}: give more --tokens",
                   index.name(form.first), length, options.packs.tokens);
    }
  }

  const data::LatentSet& set() const { return set_; }
  const data::PackTally& tally() const { return tally_; }
  std::uint64_t blocks() const { return data::block_count(set_.size(), options_.packs.packing); }

  /// Returns the packs of a block. The blocks must be asked for in order.
  std::vector<data::Pack> block(std::uint64_t number) {
    check_stop();
    const auto lengths = [this](std::span<const std::uint64_t> samples) {
      set_.index().expect(samples);
      return tokens(samples);
    };
    std::vector<data::Pack> packs = data::block_packs(set_.size(), lengths, options_.packs,
                                                      options_.seed, options_.epoch, number);
    for (const data::Pack& pack : packs)
      tally_.add(tokens(pack));
    return packs;
  }

  std::vector<std::int64_t> tokens(std::span<const std::uint64_t> samples) const {
    std::vector<std::int64_t> tokens;
    for (const std::uint64_t i : samples)
      tokens.push_back(tokens_of_form_[set_.index().form_of(i)]);
    return tokens;
  }

 private:
  const PlanOptions& options_;
  data::LatentSet set_;
  std::vector<std::int64_t> tokens_of_form_;
  data::PackTally tally_;
};

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
  std::int64_t total = 0;
  for (const std::int64_t number : numbers)
    total += number;
  return total;
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

}  // namespace

void write_plan(const PlanOptions& options, io::ManifestWriter& manifest) {
  Planner planner(options);
  const data::SampleIndex& index = planner.set().index();
  std::uint64_t number = 0;
  for (std::uint64_t block = 0; block < planner.blocks(); ++block) {
    const std::vector<data::Pack> packs = planner.block(block);
    std::vector<std::uint64_t> samples;
    for (const data::Pack& pack : packs)
      samples.insert(samples.end(), pack.begin(), pack.end());
    const std::vector<std::uint64_t> offsets = planner.set().offsets(samples);
    auto offset = offsets.begin();
    for (const data::Pack& pack : packs) {
      check_stop();
      const std::vector<std::int64_t> tokens = planner.tokens(pack);
      Json list = Json::array();
      for (std::size_t k = 0; k < pack.size(); ++k) {
        data::Entry entry = index.entry(pack[k]);
        list.push_back({{"key", std::move(entry.key)},
                        {"shard", options.split + "/" + entry.shard},
                        {"offset", *offset++},
                        {"tokens", tokens[k]}});
      }
      manifest.write({{"kind", "pack"},
                      {"pack", number++},
                      {"tokens", sum(tokens)},
                      {"samples", std::move(list)}});
    }
  }
  const data::PackStats stats = planner.tally().stats();
  manifest.tell("plan", {{"fill", rounded(stats.fill)},
                         {"square_spread", rounded(stats.square_spread)},
                         {"packs", number},
                         {"samples", planner.set().size()}});
}

std::string plan_table(const PlanOptions& options) {
  Planner planner(options);
  std::string text = "    pack  samples     tokens   full  longest\n";
  std::uint64_t number = 0;
  for (std::uint64_t block = 0; block < planner.blocks(); ++block)
    for (const data::Pack& pack : planner.block(block)) {
      if (number++ >= kShownPacks) continue;
      const std::vector<std::int64_t> tokens = planner.tokens(pack);
      text += fmt::format(
          "{:>8} {:>8} {:>10} {:>4.0f} % {:>8}\n", number - 1, pack.size(), sum(tokens),
          100.0 * static_cast<double>(sum(tokens)) / static_cast<double>(options.packs.tokens),
          *std::ranges::max_element(tokens));
    }
  if (number > kShownPacks) text += fmt::format("{:>8}\n", "...");
  const data::PackStats stats = planner.tally().stats();
  return text + fmt::format(
                    "\n{} in {}. Packs are {:.1f} % full. The attention work of a pack varies by "
                    "{:.1f} % (standard deviation).\n",
                    counted(static_cast<std::int64_t>(planner.set().size()), "sample"),
                    counted(static_cast<std::int64_t>(number), "pack"), 100 * stats.fill,
                    100 * stats.square_spread);
}

}  // namespace vfm::pack
