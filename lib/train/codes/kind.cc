// SPDX-License-Identifier: Apache-2.0
#include "train/kind.h"

#include "models/decoder/decoder_lora.h"
#include "models/dit/pipeline_stages.h"
#include "train/codes/data.h"
#include "train/codes/objective.h"
#include "train/encoded/clip_fields.h"
#include "train/encoded/encoded_clips.h"
#include "train/recipe/recipe_field.h"
#include "train/run.h"

namespace vfm::train {
namespace {

using nn::Recompute;

void fit_encoded_codes(Recipe& recipe, const Dataset& data, const Encoders& encoders) {
  if (encoders.vocabulary() == 0)
    fail_usage(
        "'model.type' autoregressive needs discrete latents, and the tokenizer is continuous: take "
        "a discrete one, such as builtin:fsq");
  fit_decoder(recipe, data, encoders.vocabulary());
}

class CodeKind final : public Kind {
 public:
  std::vector<std::string_view> types() const override { return {"autoregressive"}; }
  std::string_view section() const override { return "autoregressive"; }
  std::string key_words(std::string_view /*type*/, std::string_view key) const override {
    return key == "parallel.cp_kind" ? "Type *autoregressive* takes only *all_to_all* or *gather*."
                                     : "";
  }
  std::string begin_from(ModelRecipe& model, const models::ModelConfig& begun) const override {
    const auto* decoder = std::get_if<models::DecoderConfig>(&begun);
    if (!decoder) return "";
    model.decoder = *decoder;
    return "autoregressive";
  }

  std::string_view words(std::string_view /*type*/) const override {
    return "predicts discrete latents, one code after the other.";
  }

  void add_model_fields(FieldList& list, Recipe& recipe) const override {
    models::DecoderConfig& decoder = recipe.model.decoder;
    list.number("vocabulary", decoder.vocabulary, between(0, 1 << 28))
        .number("text_embed_dim", decoder.text_embed_dim, between(0, 65536))
        .number("num_attention_heads", decoder.num_attention_heads, between(1, 1024))
        .number("attention_head_dim", decoder.attention_head_dim, between(2, 1024))
        .number("num_key_value_heads", decoder.num_key_value_heads, between(0, 1024))
        .number("num_layers", decoder.num_layers, between(1, 1024))
        .number("width", decoder.stream_width, between(0, 1 << 20))
        .number("mlp_ratio", decoder.mlp_ratio, between(0.1, 64))
        .number("rope_theta", decoder.rope_theta, positive)
        .in_stages()
        .number("yarn_scale", decoder.yarn_scale, at_least(1))
        .in_stages()
        .number("yarn_frames", decoder.yarn_frames, between(1, 65536))
        .in_stages()
        .number("yarn_rows", decoder.yarn_rows, between(0, 65536))
        .in_stages()
        .numbers("yarn_betas", decoder.yarn_betas, positive)
        .in_stages()
        .flag("start_token", decoder.start_token)
        .flag("read_positions", decoder.read_positions)
        .flag("absolute_positions", decoder.absolute_positions);
  }

  void add_data_fields(FieldList& list, DataRecipe& data) const override {
    add_clip_fields(list, data);
  }

  void add_sections(FieldList& list, Recipe& r) const override {
    add_adapter_fields(list, r.lora);
    list.section("autoregressive", true)
        .number("z_loss", r.autoregressive.z_loss, at_least(0))
        .number("text_dropout", r.autoregressive.text_dropout, between(0, 1))
        .number("ignored_frames", r.autoregressive.ignored_frames, between(0, 65536))
        .number("text_padding", r.autoregressive.text_padding, between(0, 65536));
  }

  void settle(Recipe& recipe) const override {
    models::DecoderConfig& decoder = recipe.model.decoder;
    if (decoder.stream_width == decoder.heads_width()) decoder.stream_width = 0;
  }

  void check(const Recipe& recipe) const override {
    models::DecoderConfig decoder = recipe.model.decoder;
    if (decoder.vocabulary == 0) decoder.vocabulary = 1;
    check_model(recipe, [&] { decoder.validate(); });
    if (recipe.lora.rank > 0) models::lora_targets(decoder, recipe.lora);  // refuses unknown ones
  }

  std::unique_ptr<Dataset> open(const RunOptions& options,
                                const std::string& split) const override {
    if (auto clips = open_encoded(options, split, fit_encoded_codes)) return clips;
    if (options.synthetic.empty())
      return open_codes(options.data, split, options.recipe.takes_text());
    const models::DecoderConfig& decoder = options.recipe.model.decoder;
    MadeUpCodes made{.sizes = options.synthetic, .text_width = decoder.text_embed_dim};
    if (decoder.vocabulary > 0) made.vocabulary = decoder.vocabulary;
    return make_up_codes(made);
  }

  void fit_without_data(Recipe& recipe) const override {
    need_without_data(recipe.model.decoder.vocabulary, "vocabulary");
    recipe.model.decoder.validate();
  }

  data::Entry full_sample(const Recipe& recipe) const override {
    data::Entry entry;
    entry.height = 1;
    entry.width = static_cast<int>(recipe.data.tokens);
    return entry;
  }

  double sample_bytes(const Recipe& recipe, const data::Entry& sample) const override {
    return 4.0 * sample.frames * sample.height * sample.width +
           4.0 * recipe.text_tokens(sample.text_tokens) * recipe.model.decoder.text_embed_dim;
  }

  double text_dropout(const Recipe& recipe) const override {
    return recipe.autoregressive.text_dropout;
  }
  int text_padding(const Recipe& recipe) const override {
    return recipe.autoregressive.text_padding;
  }
  bool takes_text(const ModelRecipe& model) const override {
    return !model.begun || model.decoder.text_embed_dim > 0;
  }
  bool has_stages() const override { return true; }
  int* blocks(ModelRecipe& model) const override { return &model.decoder.num_layers; }
  std::vector<int> block_kinds(const ModelRecipe& model) const override {
    return std::vector<int>(static_cast<std::size_t>(model.decoder.num_layers), 0);
  }
  models::PartWork part_work(const Recipe& recipe) const override {
    const data::Entry sample = full_sample(recipe);
    return models::part_work(recipe.model.decoder, {sample.frames, sample.height, sample.width, 1},
                             recipe.compute());
  }

  int cp_ranges() const override { return 2; }
  std::vector<models::TpProduct> tp_products(const ModelRecipe& model) const override {
    const models::DecoderConfig& c = model.decoder;
    const double width = c.width(), heads = c.heads_width(),
                 keys = c.key_value_heads() * c.attention_head_dim,
                 hidden = static_cast<double>(c.hidden());
    std::vector<models::TpProduct> all = {
        {width, heads + 2 * keys}, {width, heads}, {width, 2 * hidden}, {width, hidden}};
    if (c.text_embed_dim > 0) all.insert(all.end(), 2, {width, heads});
    return all;
  }
  std::vector<std::string> adapter_targets(const Recipe& recipe) const override {
    return models::lora_target_names(recipe.model.decoder, recipe.lora);
  }
  void check_layout(const Recipe& recipe, const nn::NetworkLayout& layout) const override {
    models::check_layout(recipe.model.decoder, layout);
  }
  std::unique_ptr<Objective> make_objective(const Recipe& recipe, Recompute recompute,
                                            Device device,
                                            const nn::NetworkLayout& layout) const override {
    return make_code_objective(recipe, recompute, device, layout);
  }
};

}  // namespace

const Kind& code_kind() {
  static const CodeKind kind;
  return kind;
}

}  // namespace vfm::train
