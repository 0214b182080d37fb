// A TokenizerFamily describes one video tokenizer: all that the program knows of it beside what it
// computes (models/tokenizer.h).
//
// To add a tokenizer, add a folder with its VideoTokenizer and its TokenizerFamily, and one line in
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
#include "models/process/latent_scale.h"
#include "models/tokenizer.h"

namespace vfm::models {

/// Encoding or decoding of a latent of frames x height x width.
struct TokenizerWork {
  bool encodes = true;
  int frames = 1, height = 1, width = 1;
  std::uint64_t memory = 0;  ///< as for make_tokenizer()
  int ranks = 1;             ///< number of ranks that decode together
};

struct TokenizerCost {
  PartCost cost;                     ///< the work of the whole video, the memory of one rank
  std::optional<CosmosSplit> split;  ///< only of a network: its split into chunks and ranks
};

struct TokenizerFamily;

/// Facts about a tokenizer, from its configuration and the file headers of its folder, without
/// weights.
struct TokenizerFacts {
  const TokenizerFamily* family = nullptr;
  int channels = 0, time_factor = 1, space_factor = 1;
  int vocabulary = 0;     ///< 0: continuous
  double file_bytes = 0;  ///< of the weights
  double loading_bytes = 0;  ///< models::loading_bytes of the weights
  /// Throws Error{usage} if no split fits into the memory.
  std::function<TokenizerCost(const TokenizerWork&)> cost;
};

/// Facts about a network's latents.
struct LatentFacts {
  LatentScale scale;  ///< mean 0 and deviation 1 if the configuration has no statistics
  int time_factor = 1, space_factor = 1;
};

struct TokenizerFamily {
  std::string_view name;                 ///< for a network, its class in config.json
  std::array<std::string_view, 3> keys;  ///< keys of its configuration, besides "name"
  /// True for a network with weights in a folder. False for a built-in tokenizer, which has no
  /// weights and returns the same bits on all devices.
  bool network = false;
  bool in_diffusers = false;  ///< diffusers has this class
  bool trained = false;       ///< vfm-train trains this network

  /// Returns the facts, without `family`. Reads weights only to compare a hash. Throws what make()
  /// throws.
  TokenizerFacts (*inspect)(const TokenizerConfig& config, Device device);
  /// Returns the VideoTokenizer::config() that a tokenizer made from `config` would have. Does not
  /// make the network.
  TokenizerConfig (*settle)(const TokenizerConfig& config);
  /// See make_tokenizer().
  std::unique_ptr<VideoTokenizer> (*make)(const TokenizerConfig& config, Device device,
                                          std::uint64_t memory, const LoadingRanks& ranks);
  /// Returns what a network's config.json says of latents. `what` names it in messages. Throws
  /// Error{usage} for impossible values. Null for a built-in tokenizer.
  LatentFacts (*latents)(const Json& config, std::string_view what) = nullptr;
};

/// Returns all families.
std::span<const TokenizerFamily* const> tokenizer_families();
/// Returns the family of this name; null for another program's tokenizer.
const TokenizerFamily* find_tokenizer_family(std::string_view name);
/// Returns true if this is the name of a built-in tokenizer.
bool is_builtin_tokenizer(std::string_view name);
/// Returns the names of the families that are networks in folders.
std::vector<std::string_view> tokenizer_class_names();

/// Returns the facts about the tokenizer of `config`. Throws Error{usage} if make_tokenizer()
/// refuses it.
TokenizerFacts inspect_tokenizer(const TokenizerConfig& config, Device device = Device::cpu,
                                 std::uint64_t memory = 0);

}  // namespace vfm::models
