// SPDX-License-Identifier: Apache-2.0
#include "train/kind.h"

#include <algorithm>

#include "base/error.h"
#include "train/diffusion/latents.h"
#include "train/diffusion/objective.h"
#include "train/recipe_field.h"
#include "train/run.h"

namespace vfm::train {
namespace {

using models::Recompute;

/// How many numbers the latents of `tokens` tokens have.
double latent_values(const models::NetworkConfig& dit, double tokens) {
  const auto& p = dit.patch_size;
  return tokens * p[0] * p[1] * p[2] * dit.out_channels;
}

class DiffusionKind final : public Kind {
 public:
  std::span<const std::string_view> types() const override {
    static constexpr std::string_view names[] = {"dit", "stdit", "moviegen"};
    return names;
  }

  void add_model_fields(FieldList& list, ModelRecipe& model) const override {
    models::NetworkConfig& dit = model.dit;
    list.number("in_channels", dit.in_channels, between(0, 4096))
        .number("out_channels", dit.out_channels, between(0, 4096))
        .number("text_embed_dim", dit.text_embed_dim, between(0, 65536))
        .number("num_attention_heads", dit.num_attention_heads, between(1, 1024))
        .number("attention_head_dim", dit.attention_head_dim, between(2, 1024))
        .number("num_layers", dit.num_layers, between(1, 1024))
        .number("mlp_ratio", dit.mlp_ratio, between(0.1, 64))
        .numbers("patch_size", dit.patch_size, between(1, 64))
        .numbers("max_size", dit.max_size, between(1, 65536))
        .flag("concat_padding_mask", dit.concat_padding_mask);
    if (model.type == "moviegen")
      list.number("num_key_value_heads", dit.num_key_value_heads, between(0, 1024));
    else
      list.number("adaln_lora_dim", dit.adaln_lora_dim, between(1, 65536))
          .numbers("rope_scale", dit.rope_scale, positive)
          .flag("learnable_positions", dit.learnable_positions);
  }

  void add_sections(FieldList& list, Recipe& r) const override {
    list.section("lora")
        .number("rank", r.lora.rank, between(0, 4096))
        .number("alpha", r.lora.alpha, between(0, 1e30))
        .names("targets", r.lora.targets)
        .section("diffusion")
        .number("p_mean", r.diffusion.p_mean, between(-20, 20))
        .number("p_std", r.diffusion.p_std, between(0, 20))
        .number("sigma_min", r.diffusion.sigma_min, positive)
        .number("sigma_max", r.diffusion.sigma_max, positive)
        .number("whitening", r.diffusion.whitening, between(0, 1))
        .number("loss_scale", r.diffusion.loss_scale, positive)
        .number("text_dropout", r.diffusion.text_dropout, between(0, 1))
        .flag("scale_video_noise", r.diffusion.scale_video_noise)
        .numbers("condition_frames", r.diffusion.condition_frames, between(0, 65536))
        .number("augment_p_mean", r.diffusion.augment_p_mean, between(-20, 20))
        .number("augment_p_std", r.diffusion.augment_p_std, between(0, 20))
        .number("text_padding", r.diffusion.text_padding, between(0, 65536));
    list.section("sampling").number("steps", r.sampling.steps, between(0, 10000)).may_change();
    list.number("guidance", r.sampling.guidance, between(-1, 1000)).may_change();
    list.number("sigma_min", r.sampling.sigma_min, at_least(0)).may_change();
    list.number("sigma_max", r.sampling.sigma_max, at_least(0)).may_change();
  }

  void add_validation_fields(FieldList& list, ValidationRecipe& validation) const override {
    list.numbers("sigmas", validation.sigmas, positive).may_change();
  }

  void settle(Recipe& recipe) const override {
    recipe.model.dit.type = models::parse_network_type(recipe.model.type);
  }

  void check(const Recipe& recipe) const override {
    if (recipe.diffusion.sigma_min > recipe.diffusion.sigma_max)
      fail_usage("{} and {}: the first must be at most the second",
                 describe_setting(recipe, "diffusion.sigma_min"),
                 describe_setting(recipe, "diffusion.sigma_max"));
    if (recipe.sampling.sigma_max > 0 && recipe.sampling.sigma_min >= recipe.sampling.sigma_max)
      fail_usage("{} and {}: the first must be below the second",
                 describe_setting(recipe, "sampling.sigma_min"),
                 describe_setting(recipe, "sampling.sigma_max"));
    models::NetworkConfig dit = recipe.model.dit;  // 0 is not yet known, not wrong
    if (dit.in_channels == 0) dit.in_channels = 1;
    if (dit.out_channels == 0) dit.out_channels = dit.in_channels;
    if (dit.text_embed_dim == 0) dit.text_embed_dim = 1;
    check_model(recipe, [&] { dit.validate(); });
    if (recipe.lora.rank > 0) models::lora_targets(dit, recipe.lora);  // refuses unknown ones
  }

  std::unique_ptr<Dataset> open(const RunOptions& options,
                                const std::string& split) const override {
    const Recipe& recipe = options.recipe;
    if (options.synthetic.empty())
      return open_latents(options.data, split, recipe.diffusion.whitening, options.base.scale);
    const models::NetworkConfig& dit = recipe.model.dit;
    MadeUpLatents made;
    made.sizes = options.synthetic;
    if (dit.in_channels > 0)
      made.channels = dit.in_channels - (recipe.diffusion.video_to_world() ? 1 : 0);
    if (dit.out_channels > 0) made.channels = dit.out_channels;
    if (dit.text_embed_dim > 0) made.text_width = dit.text_embed_dim;
    return make_up_latents(made);
  }

  void fit_without_data(Recipe& recipe) const override {
    models::NetworkConfig& dit = recipe.model.dit;
    need_without_data(dit.in_channels, "in_channels");
    need_without_data(dit.text_embed_dim, "text_embed_dim");
    if (dit.out_channels == 0)
      dit.out_channels = dit.in_channels - (recipe.diffusion.video_to_world() ? 1 : 0);
    dit.validate();
  }

  data::Patch patch(const ModelRecipe& model) const override {
    const auto& size = model.dit.patch_size;
    return {size[0], size[1], size[2]};
  }

  models::NetworkCost cost(const Recipe& recipe, double tokens, double text_tokens,
                           double pack_tokens, Recompute recompute) const override {
    models::NetworkCost cost = models::network_cost(recipe.model.dit, tokens, text_tokens,
                                                    pack_tokens, recipe.compute(), recompute);
    if (recipe.lora.rank > 0) cost.flops_per_token -= cost.weight_flops;
    return cost;
  }

  /// Beside the tokens: texts, conditioning, and what goes in and out of the network.
  PassMemory pass_memory(const Recipe& recipe, const PackShare& share, const PackLoad& load,
                         Recompute recompute, Device /*device*/) const override {
    const models::NetworkConfig& dit = recipe.model.dit;
    const double size = static_cast<double>(dtype_size(recipe.compute()));
    const double at_once = recompute == Recompute::block ? 1 : dit.num_layers;
    const double packs = share.together, tokens = static_cast<double>(recipe.data.tokens);
    const double texts = text_memory(recipe, share, load, dit.text_embed_dim,
                                     1.0 * dit.key_value_heads() * dit.attention_head_dim, at_once);
    // Of both steps the noisy latents and what is to come out; what does, its gradient, and
    // patches.
    const double values = latent_values(dit, tokens);
    const double ends = values * (share.packs * 4 * 4 + packs * (2 * 4 + 2 * size + 4));
    // Of each norm shift, scale and gate, before and after the shared ones are added; their
    // gradients.
    const double norms = dit.type == models::NetworkType::stdit ? 5 : 3;
    const double conditioning =
        packs * load.samples * dit.width() * 4 * 3 * (2 * norms * (at_once + 1) + 4);
    PassMemory memory;
    memory.activations = cost(recipe, 1, 1, tokens * packs, recompute).activation_bytes +
                         (texts + ends + conditioning);
    // As they were read, and put one after the other.
    memory.host = 2 * 4 * packs * (load.text_rows * dit.text_embed_dim + values);
    return memory;
  }

  bool has_graphs() const override { return true; }
  std::unique_ptr<Objective> make_objective(const Recipe& recipe, Recompute recompute,
                                            Device device) const override {
    return std::make_unique<DiffusionObjective>(recipe, recompute, device);
  }
};

}  // namespace

bool DiffusionRecipe::video_to_world() const {
  return std::ranges::any_of(condition_frames, [](int frames) { return frames > 0; });
}

const Kind& diffusion_kind() {
  static const DiffusionKind kind;
  return kind;
}

}  // namespace vfm::train
