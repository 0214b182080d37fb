// The video tokenizers, one value each: all that the program knows of a tokenizer beside what it
// computes (models/tokenizer.h).
//
// A new tokenizer is a folder with its VideoTokenizer and its TokenizerFamily, and one line in
// tokenizer_families().
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/cosmos/decode_split.h"
#include "models/part_cost.h"
#include "models/tokenizer.h"

namespace vfm::models {

/// Encoding or decoding of a latent of frames x height x width.
struct TokenizerWork {
  bool encodes = true;
  int frames = 1, height = 1, width = 1;
  std::uint64_t memory = 0;  ///< as for make_tokenizer()
  int ranks = 1;             ///< that decode together
};

struct TokenizerCost {
  PartCost cost;                     ///< the work is that of the video, the memory that of a rank
  std::optional<CosmosSplit> split;  ///< of a network, by chunks and ranks
};

struct TokenizerFamily;

/// What a configuration and the headers of its folder say, without weights.
struct TokenizerFacts {
  const TokenizerFamily* family = nullptr;
  int channels = 0, time_factor = 1, space_factor = 1;
  int vocabulary = 0;     ///< 0: continuous
  double file_bytes = 0;  ///< of the weights
  /// Throws Error{usage} if no split fits into the memory.
  std::function<TokenizerCost(const TokenizerWork&)> cost;
};

struct TokenizerFamily {
  std::string_view name;                 ///< of a network: its class in config.json
  std::array<std::string_view, 3> keys;  ///< of its configuration, besides "name"
  /// A network with its weights in a folder. Else it is built in, has no weights, and makes the
  /// same bits on all devices.
  bool network = false;
  bool in_diffusers = false;  ///< diffusers has its class

  /// The facts but for `family`. Values are read only to compare a hash. Throws as make().
  TokenizerFacts (*inspect)(const TokenizerConfig& config, Device device);
  /// The VideoTokenizer::config() of what is made of `config`. Makes no network.
  TokenizerConfig (*settle)(const TokenizerConfig& config);
  /// As make_tokenizer().
  std::unique_ptr<VideoTokenizer> (*make)(const TokenizerConfig& config, Device device,
                                          std::uint64_t memory, const LoadingRanks& ranks);
};

/// All of them.
std::span<const TokenizerFamily* const> tokenizer_families();
/// Returns the one of this name; null: it is another program's.
const TokenizerFamily* find_tokenizer_family(std::string_view name);
/// Returns whether a tokenizer of this name is none of the networks.
bool is_builtin_tokenizer(std::string_view name);
/// The class names of those that have an ability.
std::vector<std::string_view> tokenizer_class_names(
    bool TokenizerFamily::*ability = &TokenizerFamily::network);

/// Throws Error{usage} for what make_tokenizer() does not take.
TokenizerFacts inspect_tokenizer(const TokenizerConfig& config, Device device = Device::cpu,
                                 std::uint64_t memory = 0);

}  // namespace vfm::models
