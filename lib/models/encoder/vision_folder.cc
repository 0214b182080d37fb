// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/vision_folder.h"

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {
namespace {

/// By EncoderPart; neither has scales.
constexpr std::array<const char*, 8> kVisionParts = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
    "layer_norm1",      "layer_norm2",      "mlp.fc1",          "mlp.fc2"};

bool holds_two_towers(const HfComponent& folder) {
  return !folder.type().ends_with("_vision_model");
}

}  // namespace

const Json& vision_config(const HfComponent& folder) {
  static const Json defaults = Json::object();
  const Json& config = folder.config();
  if (!holds_two_towers(folder)) return config;
  const auto found = config.find("vision_config");
  if (found == config.end() || found->is_null()) return defaults;
  if (!found->is_object())
    fail_usage("'{}': \"vision_config\" is not an object", folder.config_path());
  return *found;
}

std::function<std::string(const std::string&)> vision_names(const HfComponent& folder) {
  return [two = holds_two_towers(folder)](const std::string& name) -> std::string {
    constexpr std::string_view kPrefix = "vision_model.";
    if (name.ends_with(".position_ids")) return {};
    if (name.starts_with(kPrefix)) return name.substr(kPrefix.size());
    return two && !name.starts_with("visual_projection.") ? std::string() : name;
  };
}

std::string vision_layer_name(int layer, EncoderPart part) {
  return fmt::format("encoder.layers.{}.{}", layer,
                     kVisionParts.at(static_cast<std::size_t>(part)));
}

}  // namespace vfm::models
