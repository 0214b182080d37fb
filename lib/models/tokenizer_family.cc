// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer_family.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "models/cosmos/tokenizer.h"
#include "models/wan_vae/tokenizer.h"
#include "models/wavelet/fsq_wavelet.h"

namespace vfm::models {
namespace {

/// Of a configuration that is as it should be.
const TokenizerFamily& known_family(const TokenizerConfig& config, std::uint64_t memory) {
  const std::string& name = config.name;
  if (name.empty()) fail("the tokenizer has no 'name'");
  const TokenizerFamily* const family = find_tokenizer_family(name);
  if (!family) {
    std::vector<std::string_view> names;
    for (const TokenizerFamily* one : tokenizer_families())
      if (!one->network) names.push_back(one->name);
    names.emplace_back("a folder");
    fail_usage("unknown tokenizer '{}': choose {}", name, listed(names, " or "));
  }
  const std::string unknown = config.unknown.empty()
                                  ? TokenizerConfig::from_json(config.to_json()).unknown
                                  : config.unknown;
  if (!unknown.empty()) fail_usage("tokenizer '{}' has no option '{}'", name, unknown);
  if (memory > 0 && !family->network)
    fail_usage("--tokenizer-memory is for tokenizers from a folder: {} has no network", name);
  return *family;
}

}  // namespace

std::span<const TokenizerFamily* const> tokenizer_families() {
  static constexpr const TokenizerFamily* all[] = {
      &kWaveletFamily, &kFsqWaveletFamily, &kCosmosFamily, &kCosmosDiscreteFamily, &kWanVaeFamily};
  return all;
}

const TokenizerFamily* find_tokenizer_family(std::string_view name) {
  const auto all = tokenizer_families();
  const auto found = std::ranges::find(all, name, &TokenizerFamily::name);
  return found == all.end() ? nullptr : *found;
}

bool is_builtin_tokenizer(std::string_view name) {
  const TokenizerFamily* const family = find_tokenizer_family(name);
  return family && !family->network;
}

std::vector<std::string_view> tokenizer_class_names() {
  std::vector<std::string_view> names;
  for (const TokenizerFamily* one : tokenizer_families())
    if (one->network) names.push_back(one->name);
  return names;
}

TokenizerFacts inspect_tokenizer(const TokenizerConfig& config, Device device,
                                 std::uint64_t memory) {
  return as_usage([&] {
    const TokenizerFamily& family = known_family(config, memory);
    TokenizerFacts facts = family.inspect(config, device);
    facts.family = &family;
    return facts;
  });
}

std::unique_ptr<VideoTokenizer> make_tokenizer(const TokenizerConfig& config, Device device,
                                               std::uint64_t memory, const LoadingRanks& ranks) {
  const auto make = [&] {
    const TokenizerFamily* family = nullptr;
    std::unique_ptr<VideoTokenizer> made;
    ranks.agree([&] {
      family = &known_family(config, memory);
      if (!family->network) made = family->make(config, device, memory, ranks);
    });
    return made ? std::move(made) : family->make(config, device, memory, ranks);
  };
  return ranks.group ? make() : as_usage(make);  // ranks refuse together
}

}  // namespace vfm::models
