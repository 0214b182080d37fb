// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/json.h"
#include "models/folder/named_tensors.h"

namespace vfm::models {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 2> kWanOutside = {Pair{"conv1.", "quant_conv."},
                                             {"conv2.", "post_quant_conv."}};
/// Behind "encoder." and "decoder.".
constexpr std::array<Pair, 6> kWanParts = {Pair{"conv1.", "conv_in."},
                                           {"middle.0.", "mid_block.resnets.0."},
                                           {"middle.1.", "mid_block.attentions.0."},
                                           {"middle.2.", "mid_block.resnets.1."},
                                           {"head.0.", "norm_out."},
                                           {"head.2.", "conv_out."}};
constexpr std::array<Pair, 5> kWanBlock = {Pair{"residual.0.", "norm1."},
                                           {"residual.2.", "conv1."},
                                           {"residual.3.", "norm2."},
                                           {"residual.6.", "conv2."},
                                           {"shortcut.", "conv_shortcut."}};

/// Takes `part` from the front of `rest`, if it is there.
bool take(std::string_view& rest, std::string_view part) {
  if (!rest.starts_with(part)) return false;
  rest.remove_prefix(part.size());
  return true;
}

/// Takes a number and a dot; -1 if there is none.
int take_number(std::string_view& rest) {
  std::size_t digits = 0;
  int number = 0;
  for (; digits < rest.size() && digits < 4 && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
    number = 10 * number + (rest[digits] - '0');
  if (digits == 0 || digits >= rest.size() || rest[digits] != '.') return -1;
  rest.remove_prefix(digits + 1);
  return number;
}

/// `rest` with its beginning translated, if the list has it.
template <std::size_t n>
std::string begun(const std::array<Pair, n>& list, std::string_view rest) {
  for (const auto& [there, here] : list)
    if (take(rest, there)) return std::string(here).append(rest);
  return std::string(rest);
}

bool changes_size(std::string_view rest) {
  return rest.starts_with("resample.") || rest.starts_with("time_conv.");
}

/// A name behind "encoder.downsamples." or "decoder.upsamples.".
struct FlatName {
  int block = -1, inner = -1;  ///< inner: only of Wan 2.2, whose levels have blocks
  std::string_view rest;
};

FlatName flat_name(std::string_view rest) {
  FlatName name;
  name.block = take_number(rest);
  if (take(rest, "downsamples.") || take(rest, "upsamples.")) name.inner = take_number(rest);
  name.rest = rest;
  return name;
}

/// Wan 2.1 counts the blocks of the decoder through; diffusers by levels, each of which but the
/// last ends with a block that changes the size.
std::string decoder_block(int block, const std::set<int>& ends) {
  const auto after = ends.lower_bound(block);
  const auto level = std::distance(ends.begin(), after);
  const int first = after == ends.begin() ? 0 : *std::prev(after) + 1;
  const std::string name = "up_blocks." + std::to_string(level) + ".";
  if (after != ends.end() && *after == block) return name + "upsamplers.0.";
  return name + "resnets." + std::to_string(block - first) + ".";
}

std::string wan_name(std::string_view name, const std::set<int>& ends) {
  std::string_view rest = name;
  const bool encoder = take(rest, "encoder.");
  if (!encoder && !take(rest, "decoder.")) return begun(kWanOutside, name);
  const std::string side = encoder ? "encoder." : "decoder.";
  std::string_view inside = rest;
  if (!take(inside, encoder ? "downsamples." : "upsamples.")) {
    const std::string made = begun(kWanParts, rest);
    const std::size_t behind = made.find_first_of("0123456789");
    if (!made.starts_with("mid_block.resnets.") || behind == std::string::npos) return side + made;
    return side + made.substr(0, behind + 2) +
           begun(kWanBlock, std::string_view(made).substr(behind + 2));
  }
  const FlatName flat = flat_name(inside);
  if (flat.block < 0) return std::string(name);
  const std::string block = std::to_string(flat.block) + ".", part = begun(kWanBlock, flat.rest);
  if (flat.inner >= 0) {
    const std::string inner = changes_size(flat.rest)
                                  ? (encoder ? "downsampler." : "upsampler.")
                                  : "resnets." + std::to_string(flat.inner) + ".";
    return side + (encoder ? "down_blocks." : "up_blocks.") + block + inner + part;
  }
  return side + (encoder ? "down_blocks." + block : decoder_block(flat.block, ends)) + part;
}

constexpr const char* kWanDefaults = R"({
  "base_dim": 96, "decoder_base_dim": null, "z_dim": 16, "dim_mult": [1, 2, 4, 4],
  "num_res_blocks": 2, "attn_scales": [], "temperal_downsample": [false, true, true],
  "dropout": 0.0, "is_residual": false, "in_channels": 3, "out_channels": 3, "patch_size": null})";

constexpr const char* kStatistics16 = R"({
  "latents_mean": [-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134,
    -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921],
  "latents_std": [2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526,
    2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160]})";

constexpr const char* kStatistics48 = R"({
  "latents_mean": [-0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557, -0.1382,
    0.0542, 0.2813, 0.0891, 0.1570, -0.0098, 0.0375, -0.1825, -0.2246, -0.1207, -0.0698, 0.5109,
    0.2665, -0.2108, -0.2158, 0.2502, -0.2055, -0.0322, 0.1109, 0.1567, -0.0729, 0.0899, -0.2799,
    -0.1230, -0.0313, -0.1649, 0.0117, 0.0723, -0.2839, -0.2083, -0.0520, 0.3748, 0.0152, 0.1957,
    0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667],
  "latents_std": [0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.4990, 0.4818, 0.5013, 0.8158, 1.0344,
    0.5894, 1.0901, 0.6885, 0.6165, 0.8454, 0.4978, 0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146,
    0.8986, 0.5659, 0.7069, 0.5338, 0.4889, 0.4917, 0.4069, 0.4999, 0.6866, 0.4093, 0.5709, 0.6065,
    0.6415, 0.4944, 0.5726, 1.2042, 0.5458, 1.6887, 0.3971, 1.0600, 0.3943, 0.5537, 0.5444, 0.4089,
    0.7468, 0.7744]})";

}  // namespace

bool are_wan_vae_names(const std::vector<std::string>& names) {
  const auto has = [&](std::string_view part) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return name.find(part) != std::string::npos; });
  };
  return has("decoder.middle.0.residual.2.") || has("decoder.mid_block.resnets.0.norm1.gamma");
}

void rename_wan_vae(std::vector<std::string>& names) {
  constexpr std::string_view kUp = "decoder.upsamples.";
  std::set<int> ends;  // blocks of Wan 2.1's decoder that change the size
  bool theirs = false;
  for (const std::string& name : names) {
    theirs = theirs || name.find("middle.0.residual.") != std::string::npos;
    if (!name.starts_with(kUp)) continue;
    const FlatName flat = flat_name(std::string_view(name).substr(kUp.size()));
    if (flat.block >= 0 && flat.inner < 0 && changes_size(flat.rest)) ends.insert(flat.block);
  }
  if (!theirs) return;
  for (std::string& name : names)
    name = wan_name(name, ends);
}

Json wan_vae_defaults() {
  return Json::parse(kWanDefaults);
}

void add_wan_vae_statistics(Json& config) {
  const std::int64_t channels = get_integer(config, "z_dim").value_or(0);
  if (channels != 16 && channels != 48) return;
  const Json statistics = Json::parse(channels == 16 ? kStatistics16 : kStatistics48);
  for (const auto& [key, value] : statistics.items())
    if (!config.contains(key)) config[key] = value;
}

Json wan_vae_config_of(const NamedShapes& shapes) {
  const std::string first = ".resnets.0.conv1.weight", down = "encoder.down_blocks.",
                    up = "decoder.up_blocks.";
  const bool residual = shapes.has(down + "0" + first);
  const int levels = shapes.count(up, first);
  const int blocks = shapes.count(up + "0.resnets.", ".conv1.weight") - 1;
  const std::int64_t base = shapes.size("encoder.conv_in.weight", 0);
  std::vector<std::int64_t> multiples;
  std::vector<bool> halves;
  for (int i = 0; i < levels; ++i) {
    const std::string own = down + std::to_string(residual ? i : i * (blocks + 1));
    const std::int64_t width = shapes.size(own + (residual ? first : ".conv1.weight"), 0);
    if (width % base != 0)
      shapes.refuse(vfm::format("{} channels are no multiple of {}", width, base));
    multiples.push_back(width / base);
    if (i + 1 == levels) break;
    halves.push_back(shapes.has(residual ? own + ".downsampler.time_conv.weight"
                                         : down + std::to_string(i * (blocks + 1) + blocks) +
                                               ".time_conv.weight"));
  }
  if (levels < 2) shapes.refuse("the decoder has fewer than two levels");
  const std::int64_t colours = shapes.size("encoder.conv_in.weight", 1);
  const auto patch = std::llround(std::sqrt(static_cast<double>(colours) / 3));
  return {{"_class_name", kWanVaeClass},
          {"base_dim", base},
          {"decoder_base_dim",
           shapes.size(up + std::to_string(levels - 1) + first, 0) / multiples.front()},
          {"z_dim", shapes.size("post_quant_conv.weight", 0)},
          {"dim_mult", multiples},
          {"num_res_blocks", blocks},
          {"temperal_downsample", halves},
          {"is_residual", residual},
          {"in_channels", colours},
          {"out_channels", shapes.size("decoder.conv_out.weight", 0)},
          {"patch_size", patch}};
}

}  // namespace vfm::models
