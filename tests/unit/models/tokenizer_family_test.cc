// The list of video tokenizers: what each says of itself, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer_family.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "base/json.h"
#include "support/usage_error.h"

using namespace vfm;
using models::TokenizerConfig;
using models::TokenizerFacts;
using models::TokenizerFamily;

namespace {

TokenizerConfig usual_config(const TokenizerFamily& family) {
  static const std::map<std::string_view, std::string> kFolders = {
      {"AutoencoderKLCosmos", VFM_GOLDEN "/cosmos_vae"},
      {"CausalDiscreteVideoTokenizer", VFM_GOLDEN "/cosmos_dv"},
      {"AutoencoderKLWan", VFM_GOLDEN "/wan_vae/2.2"}};
  return models::tokenizer_config(family.network ? kFolders.at(family.name)
                                                 : std::string(family.name));
}

}  // namespace

TEST_CASE("each video tokenizer is one value of the list, and says of itself what is made of it") {
  std::set<std::string_view> names;
  for (const TokenizerFamily* family : models::tokenizer_families()) {
    INFO(family->name);
    CHECK(names.insert(family->name).second);
    CHECK(models::find_tokenizer_family(family->name) == family);
    CHECK(models::is_builtin_tokenizer(family->name) == !family->network);
    CHECK(std::ranges::none_of(family->keys, &std::string_view::empty));
    const TokenizerConfig config = usual_config(*family);
    CHECK(config.name == family->name);
    const TokenizerFacts facts = models::inspect_tokenizer(config);
    const auto made = models::make_tokenizer(config);
    CHECK(facts.family == family);
    CHECK(facts.channels == made->channels());
    CHECK(facts.time_factor == made->time_factor());
    CHECK(facts.space_factor == made->space_factor());
    CHECK(facts.vocabulary == made->vocabulary());
    CHECK((facts.file_bytes > 0) == family->network);
    CHECK(made->shares_decoding() == family->network);
    for (const bool encodes : {true, false}) {
      const models::TokenizerCost cost = facts.cost({encodes, 2, 4, 4, 0, encodes ? 1 : 3});
      CHECK(cost.split.has_value() == family->network);
      CHECK(cost.cost.activation_bytes > 0);
      CHECK((cost.cost.weight_bytes > 0) == family->network);
    }
    const TokenizerConfig settled = family->settle(config);
    CHECK(settled.hash == made->config().hash);
    CHECK(models::make_tokenizer(settled)->config() == made->config());
    const Json keys = settled.to_json();
    for (const auto& [key, value] : keys.items())
      CHECK((key == "name" || std::ranges::find(family->keys, key) != family->keys.end()));
  }
}

TEST_CASE("a video tokenizer that is not in the list is refused, and is another program's") {
  for (const char* name : {"builtin:wavelt", "AutoencoderDC"}) {
    CHECK(models::find_tokenizer_family(name) == nullptr);
    CHECK_FALSE(models::is_builtin_tokenizer(name));
    const std::string words = "unknown tokenizer '" + std::string(name) +
                              "': choose builtin:wavelet, builtin:fsq or a folder";
    CHECK(usage_error([&] { models::make_tokenizer({.name = name}); }) == words);
    CHECK(usage_error([&] { models::inspect_tokenizer({.name = name}); }) == words);
  }
  CHECK(usage_error([] { models::inspect_tokenizer({}); }) == "the tokenizer has no 'name'");
  CHECK(usage_error([] {
          models::inspect_tokenizer(
              TokenizerConfig::from_json({{"name", "builtin:fsq"}, {"channels", 6}}));
        }) == "tokenizer 'builtin:fsq' has no option 'channels'");
  CHECK(usage_error([] {
          models::inspect_tokenizer({.name = "builtin:wavelet"}, Device::cpu, 1);
        }) == "--tokenizer-memory is for tokenizers from a folder: builtin:wavelet has no network");
}
