// What Wan's transformer is beside its forward pass.
// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "models/config_limits.h"
#include "models/dit/architecture.h"
#include "models/wan/wan.h"

namespace vfm::models {
namespace {

// Rotation reaches 1024 tokens along an axis in diffusers.
void defaults_wan(NetworkConfig& config) {
  config.num_attention_heads = 40;
  config.num_layers = 40;
  config.text_embed_dim = 4096;
  config.max_size = {1024, 2048, 2048};
  config.concat_padding_mask = false;
}

void visit_named(NetworkConfig& config, ConfigFields& fields, const char* text_width) {
  WanFields& own = config.own<WanFields>();
  fields.sizes("patch_size", config.patch_size, 1, 64);
  fields.integer("num_attention_heads", config.num_attention_heads, 1, 1024);
  fields.integer("attention_head_dim", config.attention_head_dim, 2, 1024);
  fields.integer("in_channels", config.in_channels, 0, 4096);
  fields.integer("out_channels", config.out_channels, 0, 4096);
  fields.integer(text_width, config.text_embed_dim, 0, 65536);
  fields.integer("freq_dim", own.freq_dim, 2, 65536);
  fields.integer("ffn_dim", own.ffn_dim, 1, 1048576);
  fields.integer("num_layers", config.num_layers, 1, 1024);
}

void visit_wan(NetworkConfig& config, ConfigFields& fields) {
  visit_named(config, fields, "text_embed_dim");
}

void visit_json_wan(NetworkConfig& config, ConfigFields& fields) {
  visit_named(config, fields, "text_dim");
}

void check_wan(const NetworkConfig& c) {
  const WanFields& own = c.own<WanFields>();
  need_field(c.attention_head_dim >= 12 && c.attention_head_dim % 4 == 0, "attention_head_dim",
             c.attention_head_dim,
             "a multiple of 4 and at least 12, so that pairs can be split over three axes");
  need_field(c.patch_size[0] == 1, "patch_size", c.patch_size[0], "1 along time");
  need_field(own.freq_dim > 0 && own.freq_dim % 2 == 0, "freq_dim", own.freq_dim,
             "positive and even");
  need_field(own.ffn_dim > 0 && own.ffn_dim <= kMostWidth, "ffn_dim", own.ffn_dim, "1 to 1048576");
}

std::int64_t hidden_wan(const NetworkConfig& c) {
  return c.own<WanFields>().ffn_dim;
}

int text_width_wan(const NetworkConfig& c) {
  return c.width();
}

// The embedded noise level, and what the tables of blocks are added to.
std::int64_t shared_of_wan(const NetworkConfig& c) {
  return std::int64_t{7} * c.width();
}

std::vector<TpProduct> products_wan(const NetworkConfig& c) {
  const double width = c.width(), hidden = static_cast<double>(c.hidden());
  return {{width, 3 * width}, {width, width},  {width, width},
          {width, width},     {width, hidden}, {width, hidden}};
}

GivenFramesBy given_by_wan(const NetworkConfig& c) {
  constexpr int kMaskChannels = 4;
  if (c.in_channels == c.out_channels) return GivenFramesBy::clean_time;
  return c.in_channels == 2 * c.out_channels + kMaskChannels ? GivenFramesBy::mask_and_latent
                                                             : GivenFramesBy::none;
}

constexpr std::string_view kWanTargets[] = {"to_q", "to_k", "to_v", "to_out.0"};

constexpr FieldNote kWanNotes[] = {
    {"freq_dim", "Width of the sinusoid of the noise level."},
    {"ffn_dim", "Hidden width of the MLP."},
};

}  // namespace

constinit const Architecture kWan = {
    .name = "wan",
    .class_name = "WanTransformer3DModel",
    .words = "is the diffusion transformer of Wan 2.1 and 2.2.",
    .foreign = &kWanInDiffusers,
    .notes = kWanNotes,
    .fp8 = true,
    .process = Process::flow,
    .text_norm = ".norm2.",
    .lora_targets = kWanTargets,
    .defaults = defaults_wan,
    .visit = visit_wan,
    .visit_json = visit_json_wan,
    .check = check_wan,
    .hidden = hidden_wan,
    .text_width = text_width_wan,
    .shared_values = shared_of_wan,
    .tp_products = products_wan,
    .given_by = given_by_wan,
    .make = make_wan,
};

}  // namespace vfm::models
