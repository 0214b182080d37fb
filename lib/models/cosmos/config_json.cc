// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/config_json.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {
namespace {

void read(const Json& json, const char* name, int& field) {
  const std::int64_t value = get_integer(json, name).value_or(field);
  field = static_cast<int>(std::clamp<std::int64_t>(value, -1, 1 << 20));
}

void read(const Json& json, const char* name, std::vector<int>& field) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return;
  if (!found->is_array() || found->size() > 16) fail("'{}' is not a short list", name);
  field.clear();
  for (const Json& item : *found) {
    if (!item.is_number_integer()) fail("'{}' holds {}", name, dump_json(item));
    field.push_back(
        static_cast<int>(std::clamp<std::int64_t>(item.get<std::int64_t>(), -1, 1 << 20)));
  }
}

// Fields that are numbers, and lists, by name.
template <class Config, class Number, class List>
void for_each_field(Config& c, Number number, List list) {
  number("in_channels", c.in_channels);
  number("out_channels", c.out_channels);
  number("latent_channels", c.latent_channels);
  list("encoder_block_out_channels", c.encoder_block_out_channels);
  list("decode_block_out_channels", c.decode_block_out_channels);
  list("attention_resolutions", c.attention_resolutions);
  number("resolution", c.resolution);
  number("num_layers", c.num_layers);
  number("patch_size", c.patch_size);
  number("spatial_compression_ratio", c.spatial_compression_ratio);
  number("temporal_compression_ratio", c.temporal_compression_ratio);
}

}  // namespace

CosmosConfig cosmos_config_from_json(const Json& json, std::string_view what) {
  CosmosConfig c;
  try {
    const auto take = [&](const char* name, auto& field) { read(json, name, field); };
    for_each_field(c, take, take);
    read(json, "levels", c.levels);
    read(json, "z_channels", c.z_channels);
    c.settle();
    if (get_string(json, "patch_type").value_or("haar") != "haar")
      fail("'patch_type' is '{}', only haar works", *get_string(json, "patch_type"));
  } catch (const Error& error) {
    fail_usage("{}: {}", what, error.what());
  }
  c.validate(what);
  return c;
}

Json cosmos_config_to_json(const CosmosConfig& config) {
  Json json = {{"_class_name", config.discrete() ? kCosmosDiscrete : kCosmosContinuous}};
  const auto put = [&](const char* name, const auto& field) { json[name] = field; };
  for_each_field(config, put, put);
  json["patch_type"] = "haar";
  if (config.discrete()) {
    json["z_channels"] = config.z_channels;
    json["levels"] = config.levels;
  } else {
    json["scaling_factor"] = 1.0;
    // Not known; left out, readers would take those of a published tokenizer.
    json["latents_mean"] = nullptr;
    json["latents_std"] = nullptr;
  }
  return json;
}

std::optional<LatentScale> latent_statistics(const Json& config, std::string_view what) {
  const Json mean = config.value("latents_mean", Json()), std = config.value("latents_std", Json());
  if (mean.is_null() || std.is_null()) return std::nullopt;
  const auto channels = static_cast<std::size_t>(
      std::clamp<std::int64_t>(need_integer(config, "latent_channels", what), 1, 1 << 16));
  const auto finite = [](const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
  };
  const auto positive = [&](const Json& value) { return finite(value) && value.get<double>() > 0; };
  if (!mean.is_array() || !std.is_array() || mean.empty() || mean.size() != std.size() ||
      mean.size() % channels != 0 || !std::ranges::all_of(mean, finite) ||
      !std::ranges::all_of(std, positive))
    fail_usage("{}: latents_mean and latents_std are not statistics of {} channels", what,
               channels);
  return LatentScale{mean.get<std::vector<double>>(), std.get<std::vector<double>>(),
                     static_cast<int>(mean.size() / channels)};
}

}  // namespace vfm::models
