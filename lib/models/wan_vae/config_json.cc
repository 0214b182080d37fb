// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/config_json.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {
namespace {

bool absent(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || found->is_null();
}

void take(const Json& json, const char* name, int& field) {
  if (absent(json, name)) return;
  const std::int64_t value = get_integer(json, name).value_or(field);
  field = static_cast<int>(std::clamp<std::int64_t>(value, -1, 1 << 20));
}

void take(const Json& json, const char* name, std::vector<int>& field) {
  if (absent(json, name)) return;
  const Json& list = json[name];
  if (!list.is_array() || list.size() > 16) fail("'{}' is not a short list", name);
  field.clear();
  for (const Json& item : list) {
    if (!item.is_number_integer() && !item.is_boolean())
      fail("'{}' holds {}", name, dump_json(item));
    field.push_back(item.is_boolean() ? int{item.get<bool>()}
                                      : static_cast<int>(std::clamp<std::int64_t>(
                                            item.get<std::int64_t>(), -1, 1 << 20)));
  }
}

void need_factor(const Json& json, const char* name, int factor) {
  int said = factor;
  take(json, name, said);
  if (said != factor) fail("'{}' is {}, but the levels make {}", name, said, factor);
}

std::vector<double> numbers(const Json& json, const char* name, int count, std::string_view what) {
  const Json list = json.value(name, Json());
  const auto good = [](const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
  };
  if (!list.is_array() || static_cast<int>(list.size()) != count ||
      !std::ranges::all_of(list, good))
    fail_usage("{}: '{}' is not a list of {} numbers, one for each latent channel", what, name,
               count);
  return list.get<std::vector<double>>();
}

}  // namespace

WanVaeConfig wan_vae_config_from_json(const Json& json, std::string_view what) {
  WanVaeConfig c;
  try {
    take(json, "base_dim", c.base_dim);
    c.decoder_base_dim = c.base_dim;
    take(json, "decoder_base_dim", c.decoder_base_dim);
    take(json, "z_dim", c.z_dim);
    take(json, "dim_mult", c.dim_mult);
    take(json, "num_res_blocks", c.num_res_blocks);
    take(json, "temperal_downsample", c.temperal_downsample);
    c.is_residual = get_bool(json, "is_residual").value_or(false);
    take(json, "in_channels", c.in_channels);
    take(json, "out_channels", c.out_channels);
    take(json, "patch_size", c.patch_size);
    if (!absent(json, "attn_scales") && !json["attn_scales"].empty())
      fail("'attn_scales' is {}: attention in the levels is not supported",
           dump_json(json["attn_scales"]));
    c.validate(what);
    need_factor(json, "scale_factor_temporal", c.time_factor());
    need_factor(json, "scale_factor_spatial", c.space_factor());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    fail_usage("{}: {}", what, error.what());
  }
  return c;
}

std::optional<LatentScale> wan_vae_statistics(const Json& json, std::string_view what) {
  if (absent(json, "latents_mean") || absent(json, "latents_std")) return std::nullopt;
  const int channels = wan_vae_config_from_json(json, what).z_dim;
  LatentScale scale{numbers(json, "latents_mean", channels, what),
                    numbers(json, "latents_std", channels, what), 1};
  if (!std::ranges::all_of(scale.std, [](double value) { return value > 0; }))
    fail_usage("{}: 'latents_std' holds numbers that are not positive", what);
  return scale;
}

}  // namespace vfm::models
