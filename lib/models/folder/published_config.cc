// SPDX-License-Identifier: Apache-2.0
#include "models/folder/published_config.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "models/folder/hf_names.h"
#include "models/folder/named_tensors.h"
#include "models/folder/other_models.h"
#include "models/wan_vae/names.h"

namespace vfm::models {
namespace {

bool any_name_has(const io::TensorSet& set, std::string_view part) {
  return std::ranges::any_of(set.tensors(), [&](const io::TensorView& tensor) {
    return tensor.name.find(part) != std::string::npos;
  });
}

/// The shapes of a set under the names used here. Messages have those of the file.
NamedShapes shapes_today(const io::TensorSet& set, std::string_view type,
                         const Json& config = Json::object()) {
  std::vector<std::string> names;
  for (const io::TensorView& tensor : set.tensors())
    names.push_back(tensor.name);
  return {set.path(), named_today(set, type, config),
          [type = std::string(type), names = std::move(names)](const std::string& name) {
            return name_in_file(type, names, name);
          }};
}

class SizesOfFile final : public TensorSizes {
 public:
  explicit SizesOfFile(const NamedShapes& shapes) : shapes_(shapes) {}
  bool has(const std::string& name) const override { return shapes_.has(name); }
  int size(const std::string& name, std::size_t dim) const override {
    const std::int64_t size = shapes_.size(name, dim);
    if (size > kMostSize) refuse(vfm::format("'{}' has a side of {}", shapes_.in_file(name), size));
    return static_cast<int>(size);
  }
  int count(const std::string& before, const std::string& after) const override {
    return shapes_.count(before, after);
  }
  [[noreturn]] void refuse(const std::string& why) const override { shapes_.refuse(why); }

 private:
  static constexpr std::int64_t kMostSize = 1 << 28;
  const NamedShapes& shapes_;
};

/// Null if no architecture has published networks with these names.
Json published_network(const io::TensorSet& set) {
  for (const Architecture* one : architectures()) {
    if (!one->foreign || !one->foreign->published) continue;
    const std::string_view sign = one->foreign->tensors.front().sign;
    if (!any_name_has(set, sign)) continue;
    const NamedShapes shapes = shapes_today(set, one->class_name);
    NetworkConfig config = one->foreign->published(SizesOfFile(shapes));
    config.architecture = one;
    return network_config_to_json(config);
  }
  return nullptr;
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
  const NamedShapes shapes = shapes_today(set, "AutoencoderKLCosmos", counted);
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

/// Null if the tensors are not those of a T5 or umT5. What they do not say is alike in all of them.
Json published_text(const io::TensorSet& set) {
  const bool may_be = any_name_has(set, ".SelfAttention.") ||
                      any_name_has(set, ".pos_embedding.") || any_name_has(set, "enc.blk.");
  if (!may_be) return nullptr;
  const NamedShapes shapes = shapes_today(set, "umt5");
  const std::string layers = "encoder.block.", attention = ".layer.0.SelfAttention.",
                    feed = ".layer.1.DenseReluDense.", bias = "relative_attention_bias.weight";
  if (!shapes.has("shared.weight") || !shapes.has(layers + "0" + attention + "q.weight"))
    return nullptr;
  const std::string first = layers + "0" + attention, in = layers + "0" + feed;
  const bool gated = shapes.has(in + "wi_0.weight");
  const std::int64_t heads = shapes.size(first + bias, 1),
                     inner = shapes.size(first + "q.weight", 0);
  if (inner % heads != 0)
    shapes.refuse(vfm::format("a width of {} is not made of {} heads", inner, heads));
  return {{"model_type", shapes.has(layers + "1" + attention + bias) ? "umt5" : "t5"},
          {"vocab_size", shapes.size("shared.weight", 0)},
          {"d_model", shapes.size("shared.weight", 1)},
          {"d_kv", inner / heads},
          {"d_ff", shapes.size(in + (gated ? "wi_0.weight" : "wi.weight"), 0)},
          {"num_layers", shapes.count(layers, attention + "q.weight")},
          {"num_heads", heads},
          {"relative_attention_num_buckets", shapes.size(first + bias, 0)},
          {"feed_forward_proj", gated ? "gated-gelu" : "relu"}};
}

}  // namespace

Json published_config(const io::TensorSet& tensors) {
  refuse_other_tensors(tensors);
  if (Json network = published_network(tensors); !network.is_null()) return network;
  if (Json text = published_text(tensors); !text.is_null()) return text;
  if (any_name_has(tensors, "encoder.conv_in.0.conv3d.") &&
      any_name_has(tensors, "decoder.conv_in.0.conv3d."))
    return published_tokenizer(tensors);
  std::vector<std::string> names;
  for (const io::TensorView& tensor : tensors.tensors())
    names.push_back(tensor.name);
  if (are_wan_vae_names(names)) return wan_vae_config_of(shapes_today(tensors, kWanVaeClass));
  return nullptr;
}

}  // namespace vfm::models
