// SPDX-License-Identifier: Apache-2.0
#include "models/dit/architecture.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/listed.h"
#include "models/dit/dit.h"
#include "models/moviegen/moviegen.h"
#include "models/wan/wan.h"

namespace vfm::models {
namespace {

constexpr std::string_view kBlocks = "transformer_blocks.";

std::vector<const Architecture*>& all_architectures() {
  static std::vector<const Architecture*> all = {&kDit, &kStdit, &kMovieGen, &kWan};
  return all;
}

}  // namespace

std::span<const Architecture* const> architectures() {
  return all_architectures();
}

AddedArchitecture::AddedArchitecture(const Architecture& added) : added_(&added) {
  all_architectures().push_back(added_);
}

AddedArchitecture::~AddedArchitecture() {
  std::erase(all_architectures(), added_);
}

const Architecture* architecture_of_class(std::string_view class_name) {
  for (const Architecture* one : architectures()) {
    if (one->class_name == class_name) return one;
    if (one->foreign && std::ranges::find(one->foreign->classes, class_name, &ForeignClass::name) !=
                            one->foreign->classes.end())
      return one;
  }
  return nullptr;
}

const Architecture* architecture_of_pipeline(std::string_view class_name) {
  for (const Architecture* one : architectures())
    if (one->foreign && one->foreign->pipeline &&
        std::ranges::find(one->foreign->pipeline->classes, class_name) !=
            one->foreign->pipeline->classes.end())
      return one;
  return nullptr;
}

NetworkConfig default_config(const Architecture& architecture) {
  NetworkConfig config;
  config.architecture = &architecture;
  if (architecture.defaults) architecture.defaults(config);
  return config;
}

const Architecture& find_architecture(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Architecture* one : architectures()) {
    if (one->name == name) return *one;
    names.push_back(one->name);
  }
  fail_usage("unknown model type '{}': choose {}", name, listed(names, " or "));
}

GivenFramesBy given_by(const NetworkConfig& config) {
  if (config.architecture->given_by != nullptr) return config.architecture->given_by(config);
  return config.video_to_world() ? GivenFramesBy::mark : GivenFramesBy::none;
}

std::string names_of(bool Architecture::*ability) {
  std::vector<std::string_view> names;
  for (const Architecture* one : architectures())
    if (one->*ability) names.push_back(one->name);
  return listed(names, " and ");
}

void visit_common(NetworkConfig& c, ConfigFields& fields) {
  fields.integer("in_channels", c.in_channels, 0, 4096);
  fields.integer("out_channels", c.out_channels, 0, 4096);
  fields.integer("num_attention_heads", c.num_attention_heads, 1, 1024);
  fields.integer("attention_head_dim", c.attention_head_dim, 2, 1024);
  fields.integer("num_layers", c.num_layers, 1, 1024);
  fields.number("mlp_ratio", c.mlp_ratio, 0.1, 64);
  fields.integer("text_embed_dim", c.text_embed_dim, 0, 65536);
  fields.sizes("max_size", c.max_size, 1, 65536);
  fields.sizes("patch_size", c.patch_size, 1, 64);
  fields.flag("concat_padding_mask", c.concat_padding_mask, true);
}

std::unique_ptr<DiffusionNetwork> make_network(const NetworkConfig& config, std::uint64_t seed,
                                               DType compute, Device device, bool trainable,
                                               const nn::NetworkLayout& layout) {
  return config.architecture->make(config, seed, compute, device, trainable, layout);
}

std::span<const FieldNote> common_notes() {
  static constexpr FieldNote all[] = {
      {"in_channels", ""},         {"out_channels", ""},       {"text_embed_dim", ""},
      {"num_attention_heads", ""}, {"attention_head_dim", ""}, {"num_layers", ""},
      {"mlp_ratio", ""},           {"patch_size", ""},         {"max_size", "", "", true},
      {"concat_padding_mask", ""},
  };
  return all;
}

bool has_tables(const NetworkConfig& config) {
  return config.architecture->has_tables != nullptr && config.architecture->has_tables(config);
}

int skips_of(const NetworkConfig& config, int block) {
  return config.architecture->skips != nullptr ? config.architecture->skips(config, block) : 0;
}

std::vector<int> block_kinds(const NetworkConfig& config) {
  std::vector<int> kinds;
  for (int block = 0; block < config.num_layers; ++block)
    kinds.push_back(skips_of(config, block));
  if (std::accumulate(kinds.begin(), kinds.end(), 0) != 0) kinds.clear();
  return kinds;
}

std::optional<int> block_of(std::string_view name) {
  int block = 0;
  if (!name.starts_with(kBlocks)) return {};
  const char* const end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + kBlocks.size(), end, block);
  if (error != std::errc() || after == end || *after != '.') return {};
  return block;
}

std::string without_block(std::string_view name) {
  if (!block_of(name)) return std::string(name);
  return std::string(kBlocks) += name.substr(name.find('.', kBlocks.size()) + 1);
}

}  // namespace vfm::models
