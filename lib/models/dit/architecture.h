// The diffusion networks, one value each: all that recipes, folders, checkpoints, adapters, layouts
// and plans know of a network beside its forward pass (models/dit/network.h).
//
// A new network is a folder with its forward pass and its Architecture, and one line in
// architectures().
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
  /// A whole number in [least, most]. The zero of a field with `zero` means that number.
  virtual void integer(const char*, int&, int /*least*/, int /*most*/, int /*zero*/ = 0) {}
  virtual void number(const char*, double&, double /*least*/, double /*most*/) {}
  /// Numbers along T, H, W; those without limits are above zero.
  virtual void sizes(const char*, std::array<int, 3>&, int /*least*/, int /*most*/) {}
  virtual void scales(const char*, std::array<double, 3>&) {}
  /// config.json has it if it is true, or `always`.
  virtual void flag(const char*, bool&, bool /*always*/) {}
  /// In config.json the field `json`: `word`, or null for false.
  virtual void word(const char*, bool&, const char* /*json*/, const char* /*word*/) {}
  /// Width between the two matrices of a modulation. 0: one matrix; null in config.json.
  virtual void modulation_rank(const char*, int&) {}
};

/// A matrix product of a block before which rows are gathered along tp, or after which they are
/// summed. `width` is the width of these rows, `columns` the other side of the whole matrix.
struct TpProduct {
  double width = 0, columns = 0;
};

struct Architecture {
  std::string_view name;        ///< in recipes, 'model.type'
  std::string_view class_name;  ///< in config.json, "_class_name"
  std::string_view words;       ///< what it is, for the manual: a sentence after its name
  bool in_diffusers = false;    ///< diffusers has its class, and pipelines around it
  bool space_time = false;      ///< attends within frames and within pixels (stdit_shard.h)
  bool fp8 = false;             ///< can compute in FP8 (Fp8Parts)
  /// Last words of the matrices that adapters are put on by default.
  std::array<std::string_view, 4> lora_targets;

  /// Shows every field to the visitor.
  void (*visit)(NetworkConfig& config, ConfigFields& fields);
  /// Throws Error{usage} naming a field of its own that is wrong, or of the heads.
  void (*check)(const NetworkConfig& config);
  int (*key_value_heads)(const NetworkConfig& config);
  std::int64_t (*hidden)(const NetworkConfig& config);
  /// Whether it has learned position tables.
  bool (*has_tables)(const NetworkConfig& config);
  /// The products of a block that can go in chunks along tp (nn/chunked_rows.h).
  std::vector<TpProduct> (*tp_products)(const NetworkConfig& config);
  /// As make_network().
  std::unique_ptr<DiffusionNetwork> (*make)(const NetworkConfig& config, std::uint64_t seed,
                                            DType compute, Device device, bool trainable,
                                            const nn::NetworkLayout& layout);
};

/// All of them.
std::span<const Architecture* const> architectures();
/// Returns the one of this name. Throws Error{usage} for any other name.
const Architecture& find_architecture(std::string_view name);

/// The names of those that have an ability, "dit and stdit".
std::string names_of(bool Architecture::*ability);

/// Shows the fields that NetworkConfig has for all architectures.
void visit_common(NetworkConfig& config, ConfigFields& fields);
/// The value that ConfigFields::modulation_rank() shows; nullopt if the architecture has none.
std::optional<int> modulation_rank(const NetworkConfig& config);

}  // namespace vfm::models
