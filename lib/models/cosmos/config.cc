// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/config.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/json.h"
#include "models/fsq.h"

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

int log2_of(int n) {
  return std::bit_width(static_cast<unsigned>(n)) - 1;
}

bool power_of_two(int n, int most) {
  return n >= 1 && n <= most && std::has_single_bit(static_cast<unsigned>(n));
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

int CosmosConfig::space_halvings() const {
  return log2_of(spatial_compression_ratio) - log2_of(patch_size);
}

int CosmosConfig::time_halvings() const {
  return log2_of(temporal_compression_ratio) - log2_of(patch_size);
}

bool CosmosConfig::halves_space(int i) const {
  return i < encoder_blocks() - 1 && i < space_halvings();
}

bool CosmosConfig::halves_time(int i) const {
  return i < encoder_blocks() - 1 && i < time_halvings();
}

// Not the mirror of the encoder: time is doubled from the second block on.
bool CosmosConfig::doubles_time(int i) const {
  return i < decoder_blocks() - 1 && i > 0 && i < time_halvings() + 1;
}

bool CosmosConfig::doubles_space(int i) const {
  return doubles_time(i) ||
         (i < decoder_blocks() - 1 && i < space_halvings() && space_halvings() > time_halvings());
}

CosmosConfig CosmosConfig::from_json(const Json& json, std::string_view what) {
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

void CosmosConfig::settle() {
  if (discrete())
    latent_channels = static_cast<int>(levels.size());
  else
    z_channels = latent_channels;
}

Json CosmosConfig::to_json() const {
  Json json = {{"_class_name", discrete() ? kCosmosDiscrete : kCosmosContinuous}};
  const auto put = [&](const char* name, const auto& field) { json[name] = field; };
  for_each_field(*this, put, put);
  json["patch_type"] = "haar";
  if (discrete()) {
    json["z_channels"] = z_channels;
    json["levels"] = levels;
  } else {
    json["scaling_factor"] = 1.0;
    // Not known; left out, readers would take those of a published tokenizer.
    json["latents_mean"] = nullptr;
    json["latents_std"] = nullptr;
  }
  return json;
}

void CosmosConfig::validate(std::string_view what) const {
  const auto all_of_width = [](const std::vector<int>& widths) {
    return widths.size() >= 2 && widths.size() <= 8 &&
           std::ranges::all_of(widths, [](int n) { return n >= 1 && n <= 8192; });
  };
  if (in_channels != 3 || out_channels != 3)
    fail_usage("{}: {} and {} colours, must be 3", what, in_channels, out_channels);
  if (latent_channels < 1 || latent_channels > 1024 || z_channels < 1 || z_channels > 1024)
    fail_usage("{}: 'latent_channels' is {} and 'z_channels' {}, must be 1 to 1024", what,
               latent_channels, z_channels);
  if (!all_of_width(encoder_block_out_channels) || !all_of_width(decode_block_out_channels))
    fail_usage(
        "{}: 'encoder_block_out_channels' is [{}] and 'decode_block_out_channels' [{}], must be 2 "
        "to 8 numbers of 1 to 8192",
        what, fmt::join(encoder_block_out_channels, ", "),
        fmt::join(decode_block_out_channels, ", "));
  if (num_layers < 1 || num_layers > 64 || resolution < 1)
    fail_usage("{}: 'num_layers' is {} and 'resolution' {}, must be 1 to 64, and positive", what,
               num_layers, resolution);
  if (temporal_compression_ratio == 1)
    fail_usage(
        "{}: 'temporal_compression_ratio' is 1: a tokenizer of pictures (CI, DI), which is another "
        "network (one plain convolution a "
        "layer, norms of several groups) and is not supported; a tokenizer of videos (CV, DV) "
        "takes a picture as a video of one frame",
        what);
  if ((patch_size != 2 && patch_size != 4 && patch_size != 8) ||
      !power_of_two(spatial_compression_ratio, 64) || !power_of_two(temporal_compression_ratio, 64))
    fail_usage(
        "{}: 'patch_size' is {}, 'spatial_compression_ratio' {} and 'temporal_compression_ratio' "
        "{}, must be powers of two",
        what, patch_size, spatial_compression_ratio, temporal_compression_ratio);
  int balance_space = 0, balance_time = 0;
  for (int i = 0; i < 8; ++i) {
    balance_space += (halves_space(i) ? 1 : 0) - (doubles_space(i) ? 1 : 0);
    balance_time += (halves_time(i) ? 1 : 0) - (doubles_time(i) ? 1 : 0);
  }
  const int space = space_halvings(), time = time_halvings();
  if (time < 0 || space < time || space > encoder_blocks() - 1 || balance_space != 0 ||
      balance_time != 0)
    fail_usage(
        "{}: with a 'patch_size' of {} the 'spatial_compression_ratio' {} and the "
        "'temporal_compression_ratio' {} are {} halvings in space and {} in time, which do not fit "
        "{} 'encoder_block_out_channels' and {} 'decode_block_out_channels'",
        what, patch_size, spatial_compression_ratio, temporal_compression_ratio, space, time,
        encoder_block_out_channels.size(), decode_block_out_channels.size());
  if (discrete()) {
    try {
      const Fsq fsq(levels);
    } catch (const Error& error) {
      fail_usage("{}: {}", what, error.what());
    }
  }
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
    fail_usage("{}: latents_mean and latents_std are no statistics of {} channels", what, channels);
  return LatentScale{mean.get<std::vector<double>>(), std.get<std::vector<double>>(),
                     static_cast<int>(mean.size() / channels)};
}

}  // namespace vfm::models
