// Which keys a recipe has, what each may be, and which may change when a run goes on.
// SPDX-License-Identifier: Apache-2.0
#include "train/recipe_field.h"

namespace vfm::train {
namespace {

void add_decoder_fields(FieldList& list, models::DecoderConfig& decoder) {
  list.number("vocabulary", decoder.vocabulary, between(0, 1 << 28))
      .number("text_embed_dim", decoder.text_embed_dim, between(0, 65536))
      .number("num_attention_heads", decoder.num_attention_heads, between(1, 1024))
      .number("attention_head_dim", decoder.attention_head_dim, between(2, 1024))
      .number("num_key_value_heads", decoder.num_key_value_heads, between(0, 1024))
      .number("num_layers", decoder.num_layers, between(1, 1024))
      .number("mlp_ratio", decoder.mlp_ratio, between(0.1, 64))
      .number("rope_theta", decoder.rope_theta, positive)
      .number("yarn_scale", decoder.yarn_scale, at_least(1))
      .number("yarn_frames", decoder.yarn_frames, between(1, 65536))
      .numbers("yarn_betas", decoder.yarn_betas, positive);
}

void add_autoencoder_fields(FieldList& list, models::CosmosConfig& autoencoder) {
  list.number("latent_channels", autoencoder.latent_channels, between(1, 1024))
      .number("z_channels", autoencoder.z_channels, between(1, 1024))
      .numbers("levels", autoencoder.levels, between(3, 1024), true)
      .numbers("encoder_block_out_channels", autoencoder.encoder_block_out_channels,
               between(1, 8192))
      .numbers("decode_block_out_channels", autoencoder.decode_block_out_channels, between(1, 8192))
      .numbers("attention_resolutions", autoencoder.attention_resolutions, between(1, 65536), true)
      .number("resolution", autoencoder.resolution, between(1, 65536))
      .number("num_layers", autoencoder.num_layers, between(1, 64))
      .number("patch_size", autoencoder.patch_size, between(2, 8))
      .number("spatial_compression_ratio", autoencoder.spatial_compression_ratio, between(2, 64))
      .number("temporal_compression_ratio", autoencoder.temporal_compression_ratio, between(1, 64));
}

void add_network_fields(FieldList& list, ModelRecipe& model) {
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

void add_model_fields(FieldList& list, ModelRecipe& model) {
  list.section("model").choice("type", model.type, model_types());
  if (model.tokenizer())
    add_autoencoder_fields(list, model.autoencoder);
  else if (model.autoregressive())
    add_decoder_fields(list, model.decoder);
  else
    add_network_fields(list, model);
  list.choice("compute", model.compute, {"f32", "bf16"});
  if (model.tokenizer())
    list.choice("recompute", model.recompute, {"auto", "none", "block"}).may_change();
  else
    list.choice("recompute", model.recompute, {"auto", "none", "elementwise", "block"})
        .may_change();
}

void add_loss_fields(FieldList& list, Recipe& r) {
  if (r.model.tokenizer())
    list.section("tokenizer")
        .number("l1", r.tokenizer.l1, at_least(0))
        .number("l2", r.tokenizer.l2, at_least(0));
  else if (r.model.autoregressive())
    list.section("autoregressive")
        .number("z_loss", r.autoregressive.z_loss, at_least(0))
        .number("text_dropout", r.autoregressive.text_dropout, between(0, 1))
        .number("ignored_frames", r.autoregressive.ignored_frames, between(0, 65536));
  else {
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
}

}  // namespace

const std::vector<std::string>& model_types() {
  static const std::vector<std::string> types = {"dit", "stdit", "moviegen", "autoregressive",
                                                 "tokenizer"};
  return types;
}

std::vector<Field> fields_of(Recipe& r) {
  FieldList list;
  add_model_fields(list, r.model);
  add_loss_fields(list, r);
  list.section("data");
  if (r.model.tokenizer())
    list.number("frames", r.data.frames, between(1, 65536))
        .number("size", r.data.size, between(1, 65536))
        .number("shorter_side", r.data.shorter_side, between(0, 65536));
  list.number("tokens", r.data.tokens, at_least(1))
      .number("packs", r.data.packs, between(1, 1 << 20))
      .number("window", r.data.window, between(1, 1 << 20))
      .number("micro_packs", r.data.micro_packs, between(0, 1 << 20))
      .may_change();
  list.section("optimizer").number("lr", r.optimizer.lr, positive).may_change();
  list.number("beta1", r.optimizer.beta1, between(0, 0.99999))
      .number("beta2", r.optimizer.beta2, between(0, 0.99999))
      .number("eps", r.optimizer.eps, positive)
      .number("weight_decay", r.optimizer.weight_decay, between(0, 1))
      .choice("moments", r.optimizer.moments, {"f32", "bf16"})
      .number("clip", r.optimizer.clip, at_least(0))
      .number("max_skips", r.optimizer.max_skips, at_least(0))
      .may_change();
  list.section("schedule").number("warmup", r.schedule.warmup, at_least(0)).may_change();
  list.choice("shape", r.schedule.shape, {"constant", "linear", "cosine"}).may_change();
  list.number("final", r.schedule.final, between(0, 1)).may_change();
  list.section("ema")
      .choice("mode", r.ema.mode, {"off", "decay", "power"})
      .number("decay", r.ema.decay, between(0, 0.9999999))
      .number("length", r.ema.length, between(0.01, 0.28))
      .number("every", r.ema.every, between(1, 1 << 20))
      .choice("place", r.ema.place, {"device", "host"})
      .may_change();
  list.section("validation").number("every", r.validation.every, at_least(0)).may_change();
  list.number("samples", r.validation.samples, at_least(1)).may_change();
  if (!r.model.autoregressive() && !r.model.tokenizer())
    list.numbers("sigmas", r.validation.sigmas, positive).may_change();
  list.section("train").number("steps", r.train.steps, between(1, 4294967295)).may_change();
  list.number("seed", r.train.seed, at_least(0));
  list.number("checkpoint_every", r.train.checkpoint_every, at_least(1)).may_change();
  list.number("keep", r.train.keep, at_least(1)).may_change();
  list.number("log_every", r.train.log_every, at_least(1)).may_change();
  list.number("setup_limit", r.train.setup_limit, at_least(0)).may_change();
  list.number("step_limit", r.train.step_limit, at_least(0)).may_change();
  list.number("checkpoint_limit", r.train.checkpoint_limit, at_least(0)).may_change();
  list.number("peak_tflops", r.train.peak_tflops, at_least(0)).may_change();
  return list.fields;
}

}  // namespace vfm::train
