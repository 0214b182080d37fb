// SPDX-License-Identifier: Apache-2.0
#include "models/folder/published_config.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/named_tensors.h"
#include "models/folder/other_models.h"

namespace vfm::models {
namespace {

Json published_transformer(const io::TensorSet& set) {
  const char* type = "CosmosTransformer3DModel";
  const NamedShapes shapes(set.path(), named_today(set, type, Json::object()));
  const std::string block = "transformer_blocks.0.";
  const std::int64_t patch = 1 * 2 * 2, width = shapes.size("patch_embed.proj.weight", 0);
  const std::int64_t head = shapes.size(block + "attn1.norm_q.weight", 0);
  const std::int64_t channels = shapes.size("patch_embed.proj.weight", 1) / patch;
  if (width % head != 0)
    shapes.refuse(vfm::format("a width of {} is not made of heads of {}", width, head));
  if (channels < 2) shapes.refuse(vfm::format("{} channels go in", channels));
  Json config = {{"_class_name", type},
                 {"in_channels", channels - 1},  // the padding mask is one more
                 {"out_channels", shapes.size("proj_out.weight", 0) / patch},
                 {"num_attention_heads", width / head},
                 {"attention_head_dim", head},
                 {"num_layers", shapes.count("transformer_blocks.", ".attn1.norm_q.weight")},
                 {"mlp_ratio", static_cast<double>(shapes.size(block + "ff.net.0.proj.weight", 0)) /
                                   static_cast<double>(width)},
                 {"text_embed_dim", shapes.size(block + "attn2.to_k.weight", 1)},
                 {"adaln_lora_dim", shapes.size(block + "norm1.linear_1.weight", 0)},
                 {"patch_size", {1, 2, 2}},
                 {"rope_scale", {2.0, 1.0, 1.0}},
                 {"concat_padding_mask", true},
                 {"extra_pos_embed_type", nullptr}};
  if (width == 5120) config["rope_scale"] = {2.0, 2.0, 2.0};
  const std::string tables = "learnable_pos_embed.pos_emb_";
  if (shapes.has(tables + "t")) {
    config["extra_pos_embed_type"] = "learnable";
    config["max_size"] = {shapes.size(tables + "t", 0), 2 * shapes.size(tables + "h", 0),
                          2 * shapes.size(tables + "w", 0)};
  }
  return config;
}

/// The levels that a tensor's name counts: "decoder.up.3.block..." has four.
std::size_t counted_levels(const io::TensorSet& set, std::string_view before) {
  std::size_t levels = 0;
  for (const io::TensorView& tensor : set.tensors()) {
    const std::size_t at = tensor.name.find(before);
    if (at == std::string::npos || at + before.size() >= tensor.name.size()) continue;
    const char digit = tensor.name[at + before.size()];
    if (digit >= '0' && digit <= '9')
      levels = std::max(levels, static_cast<std::size_t>(digit - '0') + 1);
  }
  return levels;
}

Json published_tokenizer(const io::TensorSet& set) {
  const std::size_t ups = counted_levels(set, "decoder.up.");
  // That many widths: names say from which end levels are counted by it.
  const Json counted = {{"decode_block_out_channels", std::vector<int>(ups + 1, 0)}};
  const NamedShapes shapes(set.path(), named_today(set, "AutoencoderKLCosmos", counted));
  const std::string in = ".conv_in.conv_s.weight", first = ".resnets.0.conv1.conv_s.weight",
                    down = "encoder.down_blocks.", up = "decoder.up_blocks.";
  const auto widths_of = [&](const std::string& part, const std::string& blocks) {
    std::vector<std::int64_t> widths = {shapes.size(part + in, 0)};
    for (int i = 0; i < shapes.count(blocks, first); ++i)
      widths.push_back(shapes.size(blocks + std::to_string(i) + first, 0));
    return widths;
  };
  const std::vector<std::int64_t> encoder = widths_of("encoder", down);
  std::vector<std::int64_t> decoder = widths_of("decoder", up);
  std::ranges::reverse(decoder);

  // Colours of cubes.
  const std::int64_t pixels = shapes.size("encoder" + in, 1);
  const auto patch = std::llround(std::cbrt(static_cast<double>(pixels) / 3));
  if (3 * patch * patch * patch != pixels)
    shapes.refuse(vfm::format("{} channels are not the colours of cubes of pixels", pixels));
  std::int64_t space = patch, time = patch;
  for (int i = 0; i < shapes.count(down, first); ++i) {
    const std::string halving = down + std::to_string(i) + ".downsamplers.0.";
    if (shapes.has(halving + "conv1.weight")) space *= 2;
    if (shapes.has(halving + "conv2.weight")) time *= 2;
  }
  const std::int64_t latent = shapes.size("quant_conv.weight", 0),
                     z = shapes.size("quant_conv.weight", 1);
  Json config = {{"_class_name", "AutoencoderKLCosmos"},
                 {"latent_channels", latent},
                 {"encoder_block_out_channels", encoder},
                 {"decode_block_out_channels", decoder},
                 {"num_layers", shapes.count(down + "0.resnets.", ".conv1.conv_s.weight")},
                 {"patch_size", patch},
                 {"spatial_compression_ratio", space},
                 {"temporal_compression_ratio", time}};
  if (latent == z) return config;
  const std::vector<int> levels = {8, 8, 8, 5, 5, 5};
  if (latent != std::ssize(levels))
    shapes.refuse(vfm::format("of {} channels with codes the levels are not known", latent));
  config["_class_name"] = "CausalDiscreteVideoTokenizer";
  config["z_channels"] = z;
  config["levels"] = levels;
  return config;
}

bool any_name_has(const io::TensorSet& set, std::string_view part) {
  return std::ranges::any_of(set.tensors(), [&](const io::TensorView& tensor) {
    return tensor.name.find(part) != std::string::npos;
  });
}

}  // namespace

Json published_config(const io::TensorSet& tensors) {
  refuse_other_tensors(tensors);
  if (any_name_has(tensors, "blocks.block0.blocks.")) return published_transformer(tensors);
  if (any_name_has(tensors, "encoder.conv_in.0.conv3d.") &&
      any_name_has(tensors, "decoder.conv_in.0.conv3d."))
    return published_tokenizer(tensors);
  return nullptr;
}

}  // namespace vfm::models
