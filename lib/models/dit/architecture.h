// An Architecture describes one diffusion network: all that recipes, folders, checkpoints,
// adapters, layouts and plans know of it. The forward pass is apart (models/dit/network.h).
//
// To add a network, add a folder with its forward pass (models/dit/framed_forward.h) and its
// Architecture, a line in architectures(), and its files in models/meson.build. The parameters of
// block N are "transformer_blocks.N...". If the blocks are not alike, Architecture::skips tells
// their kinds: plans look at few blocks of each kind.
// Thread-safety: free functions, any thread. AddedArchitecture: while no other thread uses models.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/dit/foreign.h"
#include "models/dit/network.h"
#include "models/process/process.h"

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
  /// then. Recipes also have the key `kind`, which is "lora" for two matrices and "full" for one.
  virtual void modulation(const char* /*kind*/, std::string&, const char* /*rank*/, int&) {}
};

/// The words of recipes and of their manual about a field of NetworkConfig.
struct FieldNote {
  std::string_view name;
  std::string_view words;  ///< for the manual, besides those of train/recipe/recipe_words.cc
  std::string_view unit = {};
  bool next_stage = false;  ///< a run's next stage may change the field
};

/// A matrix product of a block. Its input rows are gathered along tp, or its result rows are summed
/// along tp. `width` is the width of these rows, `columns` the other side of the whole matrix.
struct TpProduct {
  double width = 0, columns = 0;
};

struct Architecture {
  std::string_view name;           ///< in recipes, 'model.type'
  std::string_view class_name;     ///< in config.json, "_class_name"
  std::string_view words;          ///< for the manual: the sentence after the name
  std::string_view cp_words = {};  ///< for the manual: the kinds of cp that it takes, if not all
  /// What other programs know of it. Null: only this program writes such networks.
  const ForeignNetwork* foreign = nullptr;
  /// Notes on fields that are not in common_notes(). Recipes have them in the order of visit().
  std::span<const FieldNote> notes = {};
  bool space_time = false;  ///< attends within frames and within pixels (stdit_shard.h)
  bool fp8 = false;         ///< can compute in FP8 (Fp8Parts)
  Process process = {};     ///< of published models, and the default of recipes (models/process/)
  /// Part of the names of the norm before cross-attention that has parameters; empty: none has.
  std::string_view text_norm = {};
  /// Last words of the names of the matrices that get adapters by default.
  std::span<const std::string_view> lora_targets;

  /// Sets the defaults of recipes and config.json that differ from NetworkConfig's. Null: none do.
  void (*defaults)(NetworkConfig& config) = nullptr;
  /// Shows every field to the visitor, under the names of recipes.
  void (*visit)(NetworkConfig& config, ConfigFields& fields);
  /// The same under the names of config.json. Null: they are those of recipes.
  void (*visit_json)(NetworkConfig& config, ConfigFields& fields) = nullptr;
  /// Throws Error{usage} naming the field if an own field, or one of the heads, is wrong.
  void (*check)(const NetworkConfig& config);
  int (*key_value_heads)(const NetworkConfig& config) = nullptr;  ///< null: those of queries
  std::int64_t (*hidden)(const NetworkConfig& config);
  int (*text_width)(const NetworkConfig& config) = nullptr;  ///< in blocks; null: text_embed_dim
  /// Number of tensors that a block adds to nn::Stream::more, less those that it takes from there.
  /// Blocks with one number are alike. Null: it is 0.
  int (*skips)(const NetworkConfig& config, int block) = nullptr;
  /// Returns true if the network has learned position tables. Null: it has none.
  bool (*has_tables)(const NetworkConfig& config) = nullptr;
  /// Returns the number of values of a sample that all blocks compute alike from its noise level,
  /// besides learned positions. The stages of a pipeline repeat this work.
  std::int64_t (*shared_values)(const NetworkConfig& config);
  /// Returns the products of a block whose rows can travel along tp in chunks (nn/chunked_rows.h).
  std::vector<TpProduct> (*tp_products)(const NetworkConfig& config);
  /// See given_by(). Null: by a mark if there is a channel for it.
  GivenFramesBy (*given_by)(const NetworkConfig& config) = nullptr;
  /// See make_network().
  std::unique_ptr<DiffusionNetwork> (*make)(const NetworkConfig& config, std::uint64_t seed,
                                            DType compute, Device device, bool trainable,
                                            const nn::NetworkLayout& layout);
};

/// Returns all architectures.
std::span<const Architecture* const> architectures();
/// Returns the architecture of this name. Throws Error{usage} if there is none.
const Architecture& find_architecture(std::string_view name);
/// Returns the architecture with this "_class_name" in config.json; null if there is none.
const Architecture* architecture_of_class(std::string_view class_name);
/// Returns the architecture that has this class of pipeline; null if there is none.
const Architecture* architecture_of_pipeline(std::string_view class_name);

/// Adds an architecture, by reference, to architectures() while this object lives, for tests.
class AddedArchitecture {
 public:
  explicit AddedArchitecture(const Architecture& added);
  ~AddedArchitecture();
  AddedArchitecture(const AddedArchitecture&) = delete;
  AddedArchitecture& operator=(const AddedArchitecture&) = delete;

 private:
  const Architecture* added_;
};

/// Returns a configuration with the architecture's defaults.
NetworkConfig default_config(const Architecture& architecture);
/// Returns the names of the architectures that have an ability, such as "dit and stdit".
std::string names_of(bool Architecture::*ability);

/// Return Architecture::has_tables or false, and Architecture::skips or 0.
bool has_tables(const NetworkConfig& config);
int skips_of(const NetworkConfig& config, int block);
/// Returns a number for each block: blocks of a kind have the same matrices and the same work.
/// Returns an empty list if the network cannot have num_layers blocks, as skips would be left over.
std::vector<int> block_kinds(const NetworkConfig& config);
/// Returns the block that has the parameter or module of this name; nullopt if none has.
std::optional<int> block_of(std::string_view name);
/// Returns the name without the number of its block: "transformer_blocks.attn1.to_q" of
/// "transformer_blocks.7.attn1.to_q". The name itself if it is in no block.
std::string without_block(std::string_view name);

/// Shows the visitor the fields that NetworkConfig has for all architectures.
void visit_common(NetworkConfig& config, ConfigFields& fields);
/// Returns the notes on the fields that all architectures have, in the order of recipes.
std::span<const FieldNote> common_notes();

}  // namespace vfm::models
