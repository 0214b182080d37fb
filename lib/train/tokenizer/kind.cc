// SPDX-License-Identifier: Apache-2.0
#include "train/kind.h"

#include <algorithm>

#include "base/error.h"
#include "data/clips.h"
#include "train/recipe/recipe_field.h"
#include "train/run.h"
#include "train/tokenizer/clips.h"
#include "train/tokenizer/objective.h"

namespace vfm::train {
namespace {

using nn::Recompute;

class TokenizerKind final : public Kind {
 public:
  std::vector<std::string_view> types() const override { return {"tokenizer"}; }
  std::string_view section() const override { return "tokenizer"; }
  std::string begin_from(ModelRecipe& model, const models::ModelConfig& begun) const override {
    const auto* autoencoder = std::get_if<models::CosmosConfig>(&begun);
    if (!autoencoder) return "";
    model.autoencoder = *autoencoder;
    return "tokenizer";
  }

  std::string_view words(std::string_view /*type*/) const override {
    return "is a video tokenizer that trains on clips.";
  }

  void add_model_fields(FieldList& list, Recipe& recipe) const override {
    models::CosmosConfig& autoencoder = recipe.model.autoencoder;
    list.number("latent_channels", autoencoder.latent_channels, between(1, 1024))
        .number("z_channels", autoencoder.z_channels, between(1, 1024))
        .numbers("levels", autoencoder.levels, between(3, 1024), true)
        .numbers("encoder_block_out_channels", autoencoder.encoder_block_out_channels,
                 between(1, 8192))
        .numbers("decode_block_out_channels", autoencoder.decode_block_out_channels,
                 between(1, 8192))
        .numbers("attention_resolutions", autoencoder.attention_resolutions, between(1, 65536),
                 true)
        .number("resolution", autoencoder.resolution, between(1, 65536))
        .number("num_layers", autoencoder.num_layers, between(1, 64))
        .number("patch_size", autoencoder.patch_size, between(2, 8))
        .number("spatial_compression_ratio", autoencoder.spatial_compression_ratio, between(2, 64))
        .number("temporal_compression_ratio", autoencoder.temporal_compression_ratio,
                between(1, 64));
  }

  void add_sections(FieldList& list, Recipe& r) const override {
    list.section("tokenizer", true)
        .number("l1", r.tokenizer.l1, at_least(0))
        .number("l2", r.tokenizer.l2, at_least(0));
  }

  void add_data_fields(FieldList& list, DataRecipe& data) const override {
    list.number("frames", data.frames, between(1, 65536))
        .number("size", data.size, between(1, 65536))
        .number("shorter_side", data.shorter_side, between(0, 65536));
  }

  std::span<const Recompute> recomputes() const override {
    static constexpr Recompute some[] = {Recompute::none, Recompute::block};
    return some;
  }
  bool can_offload() const override { return false; }
  void settle(Recipe& recipe) const override { recipe.model.autoencoder.settle(); }

  void check(const Recipe& recipe) const override {
    const models::CosmosConfig& autoencoder = recipe.model.autoencoder;
    check_model(recipe, [&] { autoencoder.validate("the recipe's model"); });
    if (recipe.data.size % autoencoder.spatial_compression_ratio != 0)
      fail_usage("{} and {}: the first must be a multiple of the second",
                 describe_setting(recipe, "data.size"),
                 describe_setting(recipe, "model.spatial_compression_ratio"));
    if (recipe.tokenizer.l1 == 0 && recipe.tokenizer.l2 == 0)
      fail_usage("{} and {}: set one of them above 0", describe_setting(recipe, "tokenizer.l1"),
                 describe_setting(recipe, "tokenizer.l2"));
  }

  std::string_view data_tool() const override { return "vfm-shard"; }
  bool has_split(const std::string& folder, const std::string& split) const override {
    return data::ClipSet::has_split(folder, split);
  }

  std::unique_ptr<Dataset> open(const RunOptions& options,
                                const std::string& split) const override {
    if (options.synthetic.empty()) return open_clips(options.data, split, options.recipe);
    return make_up_clips(options.synthetic, options.recipe.model.autoencoder);
  }

  void fit_without_data(Recipe& /*recipe*/) const override {}

  data::Entry full_sample(const Recipe& recipe) const override {
    const models::CosmosConfig& config = recipe.model.autoencoder;
    data::Entry entry;
    entry.frames = 1 + (recipe.data.frames - 1) / config.temporal_compression_ratio;
    entry.height = entry.width = recipe.data.size / config.spatial_compression_ratio;
    return entry;
  }

  double sample_bytes(const Recipe& recipe, const data::Entry& sample) const override {
    const models::CosmosConfig& config = recipe.model.autoencoder;
    const double frames = 1.0 + (sample.frames - 1) * config.temporal_compression_ratio;
    return 3.0 * 4 * frames * sample.height * sample.width * config.spatial_compression_ratio *
           config.spatial_compression_ratio;
  }

  bool one_by_one() const override { return true; }
  std::string_view pipeline_part() const override { return "vae"; }
  void check_layout(const Recipe&, const nn::NetworkLayout& layout) const override {
    if (!layout.alone())
      fail_usage(
          "a tokenizer is not shared by ranks: the nearest layout is parallel.tp=1 parallel.cp=1");
  }
  std::unique_ptr<Objective> make_objective(const Recipe& recipe, Recompute recompute,
                                            Device device,
                                            const nn::NetworkLayout& layout) const override {
    check_layout(recipe, layout);
    return std::make_unique<TokenizerObjective>(recipe, recompute, device);
  }
};

}  // namespace

const Kind& tokenizer_kind() {
  static const TokenizerKind kind;
  return kind;
}

}  // namespace vfm::train
