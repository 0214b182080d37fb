// An Architecture describes one diffusion network: all that recipes, folders, checkpoints,
// adapters, layouts and plans know of it. The forward pass is apart (models/dit/network.h).
//
// To add a network, add a folder with its forward pass and its Architecture, and one line in
// architectures(). Blocks are alike, and their parameters are "transformer_blocks.N...": costs,
// plans and adapters look at networks of one to three blocks. A recipe key of its own needs words
// in train/recipe/recipe_words.cc.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/dit/network.h"

namespace vfm::models {

/// Is shown each field of a configuration, in the order and under the names of config.json. Reads
/// or writes it. A visitor overrides what it needs.
class ConfigFields {
 public:
  virtual ~ConfigFields() = default;
  /// A whole number in [least, most]. 0 stands for `zero`, which is what config.json then has.
  virtual void integer(const char*, int&, int /*least*/, int /*most*/, int /*zero*/ = 0) {}
  virtual void number(const char*, double&, double /*least*/, double /*most*/) {}
  /// Whole numbers in [least, most] along T, H, W.
  virtual void sizes(const char*, std::array<int, 3>&, int /*least*/, int /*most*/) {}
  /// Numbers above 0 along T, H, W.
  virtual void scales(const char*, std::array<double, 3>&) {}
  /// Written to config.json if it is true or `always` is set.
  virtual void flag(const char*, bool&, bool /*always*/) {}
  /// Written to config.json as the field `json`: `word` for true, null for false.
  virtual void word(const char*, bool&, const char* /*json*/, const char* /*word*/) {}
  /// Width between the two matrices of a modulation. 0 stands for one matrix; config.json has null
  /// then.
  virtual void modulation_rank(const char*, int&) {}
};

/// A matrix product of a block. Its input rows are gathered along tp, or its result rows are summed
/// along tp. `width` is the width of these rows, `columns` the other side of the whole matrix.
struct TpProduct {
  double width = 0, columns = 0;
};

struct Architecture {
  std::string_view name;        ///< in recipes, 'model.type'
  std::string_view class_name;  ///< in config.json, "_class_name"
  std::string_view words;       ///< for the manual: the sentence after the name
  bool in_diffusers = false;    ///< diffusers has this class, and pipelines with it
  bool space_time = false;      ///< attends within frames and within pixels (stdit_shard.h)
  bool fp8 = false;             ///< can compute in FP8 (Fp8Parts)
  /// Part of the names of the norm before cross-attention that has a modulation; empty: none has.
  std::string_view text_norm = {};
  /// Last words of the names of the matrices that get adapters by default.
  std::array<std::string_view, 4> lora_targets;

  /// Shows every field to the visitor.
  void (*visit)(NetworkConfig& config, ConfigFields& fields);
  /// Throws Error{usage} naming the field if an own field of this architecture, or one of the
  /// heads, is wrong.
  void (*check)(const NetworkConfig& config);
  int (*key_value_heads)(const NetworkConfig& config);
  std::int64_t (*hidden)(const NetworkConfig& config);
  /// Returns true if the network has learned position tables.
  bool (*has_tables)(const NetworkConfig& config);
  /// Returns the products of a block whose rows can travel along tp in chunks (nn/chunked_rows.h).
  std::vector<TpProduct> (*tp_products)(const NetworkConfig& config);
  /// See make_network().
  std::unique_ptr<DiffusionNetwork> (*make)(const NetworkConfig& config, std::uint64_t seed,
                                            DType compute, Device device, bool trainable,
                                            const nn::NetworkLayout& layout);
};

/// Returns all architectures.
std::span<const Architecture* const> architectures();
/// Returns the architecture of this name. Throws Error{usage} if there is none.
const Architecture& find_architecture(std::string_view name);

/// Returns the names of the architectures that have an ability, such as "dit and stdit".
std::string names_of(bool Architecture::*ability);

/// Shows the visitor the fields that NetworkConfig has for all architectures.
void visit_common(NetworkConfig& config, ConfigFields& fields);
/// Returns the value that ConfigFields::modulation_rank() is shown; nullopt if the architecture
/// does not show one.
std::optional<int> modulation_rank(const NetworkConfig& config);

}  // namespace vfm::models
