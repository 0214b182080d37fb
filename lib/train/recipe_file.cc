// SPDX-License-Identifier: Apache-2.0
#include "train/recipe_file.h"

#include <algorithm>

#include "base/error.h"
#include "io/file.h"
#include "train/recipe_field.h"

namespace vfm::train {
namespace {

const std::vector<std::string> kModelTypes = {"dit", "stdit", "moviegen", "autoregressive",
                                              "tokenizer"};

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
  models::DitConfig& dit = model.dit;
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
  list.section("model").choice("type", model.type, kModelTypes);
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
  else
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
}

/// Those of the recipe's model.type.
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

/// Whether there is a type of model that has the key.
bool is_of_other_type(const std::string& key) {
  return std::ranges::any_of(kModelTypes, [&](const std::string& type) {
    Recipe other;
    other.model.type = type;
    return find_field(fields_of(other), key) != nullptr;
  });
}

void check_tokenizer(const Recipe& recipe) {
  const models::CosmosConfig& autoencoder = recipe.model.autoencoder;
  autoencoder.validate("the recipe's model");
  if (recipe.data.size % autoencoder.spatial_compression_ratio != 0)
    fail_usage("'data.size' is {}, must be a multiple of {}, the tokenizer's compression in space",
               recipe.data.size, autoencoder.spatial_compression_ratio);
  if (recipe.tokenizer.l1 == 0 && recipe.tokenizer.l2 == 0)
    fail_usage("'tokenizer.l1' and 'tokenizer.l2' are both 0: nothing is to be learnt");
}

/// What no single field can tell.
void check_together(const Recipe& recipe) {
  if (recipe.diffusion.sigma_min > recipe.diffusion.sigma_max)
    fail_usage("'diffusion.sigma_min' is {}, must be at most 'diffusion.sigma_max', {}",
               recipe.diffusion.sigma_min, recipe.diffusion.sigma_max);
  if (recipe.model.tokenizer()) return check_tokenizer(recipe);
  if (recipe.model.autoregressive()) {
    models::DecoderConfig decoder = recipe.model.decoder;
    if (decoder.vocabulary == 0) decoder.vocabulary = 1;  // 0 is not yet known, not wrong
    return decoder.validate();
  }
  models::DitConfig dit = recipe.model.dit;  // 0 is not yet known, not wrong
  if (dit.in_channels == 0) dit.in_channels = 1;
  if (dit.out_channels == 0) dit.out_channels = dit.in_channels;
  if (dit.text_embed_dim == 0) dit.text_embed_dim = 1;
  dit.validate();
  if (recipe.lora.rank > 0) models::lora_targets(dit, recipe.lora);  // refuses unknown ones
}

/// Throws Error{usage} listing all settings that are of other types of model than the recipe's.
void refuse_other_types(std::span<const Setting> settings, const std::vector<Field>& fields,
                        const std::string& type) {
  std::vector<std::string> others;
  bool said = false;
  for (const Setting& setting : settings) {
    said = said || setting.key == "model.type";
    if (!find_field(fields, setting.key) && is_of_other_type(setting.key))
      others.push_back(fmt::format("'{}' in {}", setting.key, setting.where));
  }
  if (others.empty()) return;
  fail_usage(
      "{} {} not for {}: leave {} out", fmt::join(others, ", "), others.size() == 1 ? "is" : "are",
      said ? fmt::format("a 'model.type' of {}", type)
           : fmt::format("a model of type {}, which it is where 'model.type' is not set", type),
      others.size() == 1 ? "it" : "them");
}

/// The type of a model to begin from, and its configuration into the recipe.
std::string take_initial(ModelRecipe& model, const Beginning& beginning) {
  if (beginning.decoder) {
    model.decoder = *beginning.decoder;
    return "autoregressive";
  }
  if (beginning.autoencoder) {
    model.autoencoder = *beginning.autoencoder;
    return "tokenizer";
  }
  model.dit = beginning.model;
  return std::string(models::network_type_name(model.dit.type));
}

/// The recipe and the model that the run begins from.
void check_initial(const Recipe& recipe, const Beginning& beginning) {
  Recipe fitting = recipe;
  take_initial(fitting.model, beginning);
  if (beginning.facts.scale && recipe.diffusion.whitening != beginning.whitening)
    fail_usage(
        "'diffusion.whitening' is {}, but the model to begin from sees latents in a scale of its "
        "own, of {}; leave it out",
        recipe.diffusion.whitening, beginning.whitening);
  const std::vector<std::string> differences = changed_settings(to_json(fitting), recipe);
  if (!differences.empty())
    fail_usage("the recipe is not that of the model to begin from: {}; leave these out",
               fmt::join(differences, "; "));
  const models::LoraOptions &theirs = beginning.adapters, &ours = recipe.lora;
  if (theirs.rank > 0 &&
      (ours.rank != theirs.rank || ours.alpha != theirs.alpha || ours.targets != theirs.targets))
    fail_usage(
        "the adapters to go on with have rank {}, alpha {} and targets [{}], the recipe's have {}, "
        "{} and [{}]; leave 'lora' out, or begin new ones with --init-lora merge",
        theirs.rank, theirs.alpha, fmt::join(theirs.targets, ", "), ours.rank, ours.alpha,
        fmt::join(ours.targets, ", "));
}

}  // namespace

Recipe make_recipe(std::span<const Setting> settings, const Beginning* beginning) {
  Recipe recipe;
  recipe.model.dit.in_channels = recipe.model.dit.out_channels = 0;
  recipe.model.dit.text_embed_dim = 0;
  recipe.model.decoder.vocabulary = recipe.model.decoder.text_embed_dim = 0;
  std::string initial_type;
  if (beginning) {
    recipe.model.type = initial_type = take_initial(recipe.model, *beginning);
    recipe.diffusion.text_padding = beginning->text_padding;
    recipe.diffusion.condition_frames = beginning->condition_frames;
    recipe.diffusion.whitening = beginning->whitening;
    recipe.lora = beginning->adapters;
  }
  // First the type of the model: it decides which keys there are.
  for (const Setting& setting : settings)
    if (setting.key == "model.type") fields_of(recipe).front().set(setting);
  if (beginning && recipe.model.type != initial_type)
    fail_usage("'model.type' is {}, but the model to begin from is a {}", recipe.model.type,
               initial_type);
  if (!recipe.model.autoregressive() && !recipe.model.tokenizer())
    recipe.model.dit.type = models::parse_network_type(recipe.model.type);
  const std::vector<Field> fields = fields_of(recipe);
  refuse_other_types(settings, fields, recipe.model.type);
  for (const Setting& setting : settings) {
    if (const Field* field = find_field(fields, setting.key)) {
      field->set(setting);
      continue;
    }
    fail_usage("unknown key '{}' in {}; did you mean '{}'?", setting.key, setting.where,
               nearest_key(fields, setting.key));
  }
  recipe.model.autoencoder.settle();
  if (beginning) check_initial(recipe, *beginning);
  if (recipe.lora.rank > 0 && !beginning)
    fail_usage("'lora.rank' is {}: adapters need a model to adapt, give --init DIR",
               recipe.lora.rank);
  if (recipe.lora.rank == 0 && (recipe.lora.alpha != 0 || !recipe.lora.targets.empty()))
    fail_usage("'{}' is set, but not 'lora.rank': without a rank there are no adapters",
               recipe.lora.alpha != 0 ? "lora.alpha" : "lora.targets");
  check_together(recipe);
  return recipe;
}

std::vector<Setting> read_settings(const std::string& path,
                                   const std::vector<std::string>& overrides) {
  const std::string text = as_usage([&] { return io::read_stream(path); });
  std::vector<Setting> settings = parse_yaml(text, fmt::format("'{}'", path));
  for (const std::string& argument : overrides)
    settings.push_back(parse_override(argument));
  return settings;
}

bool sets_adapters(std::span<const Setting> settings) {
  std::string rank = "0";
  for (const Setting& setting : settings)
    if (setting.key == "lora.rank" && !setting.list) rank = setting.values[0];
  return rank != "0";
}

bool is_of_tokenizer(std::span<const Setting> settings) {
  ModelRecipe model;
  FieldList list;
  list.section("model").choice("type", model.type, kModelTypes);
  for (const Setting& setting : settings)
    if (setting.key == "model.type") list.fields.front().set(setting);
  return model.tokenizer();
}

Json to_json(const Recipe& recipe) {
  Recipe copy = recipe;
  Json sections = Json::object();
  for (const Field& field : fields_of(copy)) {
    const std::size_t dot = field.key.find('.');
    sections[field.key.substr(0, dot)][field.key.substr(dot + 1)] = field.get();
  }
  return sections;
}

std::string to_yaml(const Recipe& recipe) {
  std::string text;
  const Json sections = to_json(recipe);
  for (const auto& [section, keys] : sections.items()) {
    text += section + ":\n";
    for (const auto& [key, value] : keys.items())
      text += fmt::format("  {}: {}\n", key,
                          value.is_string() ? value.get<std::string>() : dump_json(value));
  }
  return text;
}

std::vector<std::string> changed_settings(const Json& old, const Recipe& now, bool allowed) {
  Recipe copy = now, usual;
  usual.model.type = now.model.type;  // so that both have the same fields
  std::vector<std::string> changes;
  const std::vector<Field> fields = fields_of(copy), defaults = fields_of(usual);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.may_change != allowed) continue;
    const std::size_t dot = field.key.find('.');
    const std::string section = field.key.substr(0, dot), key = field.key.substr(dot + 1);
    Json before = defaults[i].get();  // of a checkpoint from before the setting was there
    if (old.is_object() && old.contains(section) && old[section].contains(key))
      before = old[section][key];
    if (before != field.get())
      changes.push_back(
          fmt::format("{}: {} -> {}", field.key, dump_json(before), dump_json(field.get())));
  }
  return changes;
}

}  // namespace vfm::train
