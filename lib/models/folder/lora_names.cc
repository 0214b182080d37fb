// SPDX-License-Identifier: Apache-2.0
#include "models/folder/lora_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "models/dit/architecture.h"
#include "models/dit/lora.h"

namespace vfm::models {
namespace {

constexpr std::array<std::string_view, 4> kPrefixes = {"base_model.model.", "transformer.",
                                                       "diffusion_model.", "unet."};
constexpr std::array<std::string_view, 3> kFlatPrefixes = {"lora_transformer_", "lora_unet_",
                                                           "lora_"};
constexpr std::string_view kBlocks = "transformer_blocks.0.";

constexpr std::pair<std::string_view, AdapterPart> kEnds[] = {
    {".lora_A.weight", AdapterPart::a},
    {".lora_B.weight", AdapterPart::b},
    {".lora_A.default.weight", AdapterPart::a},
    {".lora_B.default.weight", AdapterPart::b},
    {".lora_down.weight", AdapterPart::a},
    {".lora_up.weight", AdapterPart::b},
    {".lora.down.weight", AdapterPart::a},
    {".lora.up.weight", AdapterPart::b},
    {".lora_linear_layer.down.weight", AdapterPart::a},
    {".lora_linear_layer.up.weight", AdapterPart::b},
    {"_lora.down.weight", AdapterPart::a},
    {"_lora.up.weight", AdapterPart::b},
    {".alpha", AdapterPart::alpha},
};

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

/// Of every matrix of every kind of network, that of block 0 for all blocks: "a_b" -> "a.b".
const std::map<std::string, std::string, std::less<>>& flat_names() {
  static const std::map<std::string, std::string, std::less<>> names = [] {
    std::map<std::string, std::string, std::less<>> made;
    for (const Architecture* one : architectures()) {
      NetworkConfig config;
      config.architecture = one;
      config.num_layers = 1;
      for (const NetworkMatrix& matrix : network_matrices(config))
        made.emplace(with_underscores(matrix.module), matrix.module);
    }
    return made;
  }();
  return names;
}

/// "transformer_blocks_12_attn1_to_q" as the network has it; "" if no network has it.
std::string module_of_flat(std::string_view flat) {
  constexpr std::string_view kFlatBlocks = "transformer_blocks_";
  if (!flat.starts_with(kFlatBlocks)) {
    const auto found = flat_names().find(flat);
    return found == flat_names().end() ? "" : found->second;
  }
  const std::string_view rest = flat.substr(kFlatBlocks.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits == rest.size()) return {};
  const auto found = flat_names().find(with_underscores(std::string(kBlocks)) +
                                       std::string(rest.substr(digits + 1)));
  if (found == flat_names().end()) return {};
  return "transformer_blocks." + std::string(rest.substr(0, digits)) + "." +
         found->second.substr(kBlocks.size());
}

/// Before peft an attention's adapters stood in its processor: "attn1.processor.to_q" of its to_q.
std::string out_of_processor(std::string module) {
  constexpr std::string_view kProcessor = ".processor.";
  const std::size_t at = module.find(kProcessor);
  if (at == std::string::npos) return module;
  module.replace(at, kProcessor.size(), ".");
  if (module.ends_with(".to_out")) module += ".0";
  return module;
}

}  // namespace

AdapterName parse_adapter_name(std::string_view name) {
  AdapterName parsed;
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  parsed.module = name;
  for (const auto& [end, part] : kEnds) {
    if (!name.ends_with(end) || name.size() == end.size()) continue;
    name.remove_suffix(end.size());
    parsed = {out_of_processor(std::string(name)), part};
    break;
  }
  if (parsed.part == AdapterPart::other || name.find('.') != std::string_view::npos) return parsed;
  for (const std::string_view prefix : kFlatPrefixes)
    if (name.starts_with(prefix))
      if (const std::string module = module_of_flat(name.substr(prefix.size())); !module.empty()) {
        parsed.module = module;
        break;
      }
  return parsed;
}

}  // namespace vfm::models
