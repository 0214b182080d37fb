// SPDX-License-Identifier: Apache-2.0
#include "train/kind.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/dit/architecture.h"
#include "models/dit/pipeline_stages.h"
#include "train/diffusion/data.h"
#include "train/diffusion/objective.h"
#include "train/encoded/clip_fields.h"
#include "train/encoded/encoded_clips.h"
#include "train/recipe/recipe_field.h"
#include "train/run.h"

namespace vfm::train {
namespace {

using nn::Recompute;

/// The grid of `tokens` tokens that is nearest to square frames; false: there is none within
/// `most`.
bool make_grid(std::int64_t tokens, const std::array<std::int64_t, 3>& most,
               std::array<std::int64_t, 3>& grid) {
  std::int64_t best = 0;
  for (std::int64_t t = 1; t <= most[0]; ++t)
    for (std::int64_t h = 1; tokens % t == 0 && h <= most[1]; ++h) {
      if (tokens / t % h != 0 || tokens / t / h > most[2]) continue;
      const std::int64_t shorter = std::min(h, tokens / t / h);
      if (shorter > best) best = shorter, grid = {t, h, tokens / t / h};
    }
  return best > 0;
}

void fit_encoded(Recipe& recipe, const Dataset& data, const Encoders& encoders) {
  if (encoders.vocabulary() > 0)
    fail_usage(
        "the tokenizer is discrete, and '{}' trains on continuous latents: take another, or set "
        "'model.type' to autoregressive",
        recipe.model.type);
  fit_network(recipe, data, encoders.channels());
}

// The fields of a network's configuration as keys of a recipe.
class ModelFields final : public models::ConfigFields {
 public:
  explicit ModelFields(FieldList& list) : list_(list) {}

  void integer(const char* name, int& value, int least, int most, int) override {
    keep(name,
         [this, name, &value, least, most] { list_.number(name, value, between(least, most)); });
  }
  void number(const char* name, double& value, double least, double most) override {
    keep(name,
         [this, name, &value, least, most] { list_.number(name, value, between(least, most)); });
  }
  void sizes(const char* name, std::array<int, 3>& value, int least, int most) override {
    keep(name,
         [this, name, &value, least, most] { list_.numbers(name, value, between(least, most)); });
  }
  void scales(const char* name, std::array<double, 3>& value) override {
    keep(name, [this, name, &value] { list_.numbers(name, value, positive); });
  }
  void flag(const char* name, bool& value, bool) override {
    keep(name, [this, name, &value] { list_.flag(name, value); });
  }
  void word(const char* name, bool& value, const char*, const char*) override {
    flag(name, value, true);
  }
  // One matrix has no width inside: where it comes after such a width, that is gone.
  void modulation(const char* kind, std::string& words, const char* rank, int& value) override {
    keep(kind, [this, kind, &words, &value] {
      list_.choice(kind, words, {"lora", "full"}, [&words, &value] {
        if (words == "full") value = 0;
      });
    });
    keep(rank, [this, rank, &value] { list_.number(rank, value, between(0, 65536)); });
  }

  // Adds the keys to the list. Those that all networks have come first.
  void add(std::span<const models::FieldNote> own) {
    const std::span<const models::FieldNote> common = models::common_notes();
    const auto place = [&](const Kept& kept) {
      return std::ranges::find(common, kept.name, &models::FieldNote::name) - common.begin();
    };
    std::ranges::stable_sort(kept_, {}, place);
    for (const Kept& kept : kept_) {
      kept.add();
      for (const auto& notes : {common, own})
        for (const models::FieldNote& note : notes)
          if (note.name == kept.name) list_.in_stages(note.next_stage);
    }
  }

 private:
  struct Kept {
    std::string_view name;
    std::function<void()> add;
  };
  void keep(std::string_view name, std::function<void()> add) {
    kept_.push_back({name, std::move(add)});
  }

  FieldList& list_;
  std::vector<Kept> kept_;
};

// The keys of a modulation, and their values; empty names if the network has none.
class ModulationKeys final : public models::ConfigFields {
 public:
  explicit ModulationKeys(models::NetworkConfig config) {
    config.architecture->visit(config, *this);
  }
  void modulation(const char* kind, std::string& words, const char* rank, int& value) override {
    kind_key = std::string("model.") + kind, rank_key = std::string("model.") + rank;
    full = words == "full", width = value;
  }

  std::string kind_key, rank_key;
  bool full = false;
  int width = 1;
};

// A network that is read has its width alone.
class ModulationByWidth final : public models::ConfigFields {
 public:
  void modulation(const char*, std::string& words, const char*, int& value) override {
    words = value == 0 ? "full" : "lora";
  }
};

// The network and process of the recipe's type: of another type they are that type's defaults.
void take_type(Recipe& recipe) {
  models::NetworkConfig& dit = recipe.model.dit;
  const models::Architecture& wanted = models::find_architecture(recipe.model.type);
  if (dit.architecture == &wanted) return;
  dit = models::default_config(wanted);
  dit.in_channels = dit.out_channels = dit.text_embed_dim = 0;  // as in the data
  set_process(recipe, wanted.process);
}

struct LevelDefaults {
  double least, most;
  std::array<double, 5> validation;
};
// Of each process. Those of flow matching are in its times, and the least is the least that
// samplers visit.
constexpr std::array<LevelDefaults, 2> kLevelDefaults = {
    {{0.0002, 80, {0.1, 0.3, 1, 3, 10}}, {0.001, 1, {0.1, 0.3, 0.5, 0.7, 0.9}}}};

// Noise levels that the recipe's process does not have, and keys that it does not take.
void check_process(const Recipe& recipe) {
  const models::Process process = recipe.diffusion.process;
  const auto refuse = [&](const char* key, const std::string& why) {
    fail_usage("{}, and {}: {}", describe_setting(recipe, key),
               describe_setting(recipe, "diffusion.process"), why);
  };
  const std::string highest = fmt::format("its highest noise level is {}", process.highest());
  if (recipe.diffusion.sigma_max > process.highest()) refuse("diffusion.sigma_max", highest);
  for (const double level : recipe.validation.sigmas)
    if (level > process.highest()) refuse("validation.sigmas", highest);
  const bool flow = process == models::Process::flow;
  if (!flow && recipe.diffusion.shift != 1)
    refuse("diffusion.shift", "only flow matching has it; add its logarithm to diffusion.p_mean");
  if (!flow && recipe.sampling.shift != 0)
    refuse("sampling.shift", "only flow matching has it; leave it out");
  for (const auto& [key, value] : {std::pair("sampling.sigma_min", recipe.sampling.sigma_min),
                                   std::pair("sampling.sigma_max", recipe.sampling.sigma_max)})
    if (flow && value != 0) refuse(key, "it is sampled by sampling.shift; leave it out");
}

// Only frames behind a mark can be given in training: others need their own batches.
void check_given(const Recipe& recipe) {
  const models::NetworkConfig& dit = recipe.model.dit;
  if (dit.architecture->given_by == nullptr) return;
  const char* const why =
      "training with given frames works for networks that mark them in a channel of their own";
  const std::string type = describe_setting(recipe, "model.type");
  if (recipe.diffusion.video_to_world())
    fail_usage("{}, and {}: {}; set it to [0]",
               describe_setting(recipe, "diffusion.condition_frames"), type, why);
  if (dit.in_channels > 0 && dit.out_channels > 0 && dit.in_channels != dit.out_channels)
    fail_usage("{} and {}, and {}: {}; choose a model with as many channels in as out",
               describe_setting(recipe, "model.in_channels"),
               describe_setting(recipe, "model.out_channels"), type, why);
}

class DiffusionKind final : public Kind {
 public:
  std::vector<std::string_view> types() const override {
    std::vector<std::string_view> all;
    for (const models::Architecture* one : models::architectures())
      all.push_back(one->name);
    return all;
  }
  std::string_view words(std::string_view type) const override {
    return models::find_architecture(type).words;
  }
  std::string key_words(std::string_view type, std::string_view key) const override {
    const models::Architecture& one = models::find_architecture(type);
    if (key == "parallel.cp_kind") return std::string(one.cp_words);
    if (key == "diffusion.condition_frames" && one.given_by != nullptr)
      return fmt::format("*{}* does not train with given frames.", type);
    for (const models::FieldNote& note : one.notes)
      if (key == "model." + std::string(note.name)) return std::string(note.words);
    return {};
  }
  std::string_view section() const override { return "diffusion"; }
  std::string begin_from(ModelRecipe& model, const models::ModelConfig& begun) const override {
    const auto* network = std::get_if<models::NetworkConfig>(&begun);
    if (!network) return "";
    model.dit = *network;
    ModulationByWidth settled;
    model.dit.architecture->visit(model.dit, settled);
    return std::string(model.dit.architecture->name);
  }

  void add_model_fields(FieldList& list, Recipe& recipe) const override {
    take_type(recipe);
    ModelRecipe& model = recipe.model;
    ModelFields fields(list);
    model.dit.architecture->visit(model.dit, fields);
    fields.add(model.dit.architecture->notes);
  }

  void add_sections(FieldList& list, Recipe& r) const override {
    add_adapter_fields(list, r.lora);
    list.section("diffusion", true)
        .choice(
            "process", models::Process::kNames,
            [&r](std::size_t i) { set_process(r, static_cast<models::Process::Kind>(i)); },
            [&r] { return static_cast<std::size_t>(r.diffusion.process.kind()); })
        .in_stages(false)
        .quiet()
        .number("p_mean", r.diffusion.p_mean, between(-20, 20))
        .number("p_std", r.diffusion.p_std, between(0, 20))
        .number("shift", r.diffusion.shift, positive)
        .quiet()
        .number("sigma_min", r.diffusion.sigma_min, positive)
        .number("sigma_max", r.diffusion.sigma_max, positive)
        .number("whitening", r.diffusion.whitening, between(0, 1))
        .in_stages(false)  // the scale of latents is the earlier run's
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
    list.number("shift", r.sampling.shift, at_least(0)).quiet().may_change();
  }

  void add_data_fields(FieldList& list, DataRecipe& data) const override {
    add_clip_fields(list, data);
  }

  void add_validation_fields(FieldList& list, ValidationRecipe& validation) const override {
    list.numbers("sigmas", validation.sigmas, positive).may_change();
  }

  void settle(Recipe& recipe) const override {
    take_type(recipe);
    const ModulationKeys keys(recipe.model.dit);
    if (keys.full && keys.width != 0)
      fail_usage("{}, and {}: only a modulation of two matrices has a width between them",
                 describe_setting(recipe, keys.kind_key), describe_setting(recipe, keys.rank_key));
  }

  void check(const Recipe& recipe) const override {
    if (recipe.diffusion.sigma_min > recipe.diffusion.sigma_max)
      fail_usage("{} and {}: the first must be at most the second",
                 describe_setting(recipe, "diffusion.sigma_min"),
                 describe_setting(recipe, "diffusion.sigma_max"));
    check_process(recipe);
    check_given(recipe);
    if (recipe.sampling.sigma_max > 0 && recipe.sampling.sigma_min >= recipe.sampling.sigma_max)
      fail_usage("{} and {}: the first must be below the second",
                 describe_setting(recipe, "sampling.sigma_min"),
                 describe_setting(recipe, "sampling.sigma_max"));
    models::NetworkConfig dit = recipe.model.dit;  // 0 is not yet known, not wrong
    if (const ModulationKeys keys(dit); !keys.full && keys.width == 0)
      fail_usage("{}, and {}: a modulation of two matrices needs a width between them",
                 describe_setting(recipe, keys.rank_key), describe_setting(recipe, keys.kind_key));
    if (dit.in_channels == 0) dit.in_channels = 1;
    if (dit.out_channels == 0) dit.out_channels = dit.in_channels;
    if (dit.text_embed_dim == 0) dit.text_embed_dim = 1;
    check_model(recipe, [&] { dit.validate(); });
    if (recipe.lora.rank > 0) models::lora_targets(dit, recipe.lora);  // refuses unknown ones
  }

  std::vector<std::string> refused_of_stage(const Recipe& earlier,
                                            const Recipe& recipe) const override {
    const models::NetworkConfig &old = earlier.model.dit, &now = recipe.model.dit;
    std::vector<std::string> refused;
    const auto refuse_change = [&](const char* key, const auto& before, const auto& after,
                                   const char* why) {
      refused.push_back(fmt::format("{}: {} -> {} ({})", key, dump_json(Json(before)),
                                    dump_json(Json(after)), why));
    };
    const bool tables = models::has_tables(old);
    bool smaller = false;
    for (std::size_t i = 0; i < 3; ++i)
      smaller = smaller || now.max_size[i] < old.max_size[i];
    if (smaller)
      refuse_change("model.max_size", old.max_size, now.max_size, "it may only grow");
    else if (now.max_size != old.max_size && earlier.lora.rank > 0 && tables)
      refuse_change("model.max_size", old.max_size, now.max_size,
                    "its position tables are those of the model under the adapters");
    if (recipe.diffusion.video_to_world() && old.in_channels > 0 && !old.video_to_world())
      refuse_change("diffusion.condition_frames", earlier.diffusion.condition_frames,
                    recipe.diffusion.condition_frames,
                    "the model has no channel that marks given frames");
    return refused;
  }

  std::unique_ptr<Dataset> open(const RunOptions& options,
                                const std::string& split) const override {
    const Recipe& recipe = options.recipe;
    if (auto clips = open_encoded(options, split, fit_encoded)) return clips;
    if (options.synthetic.empty())
      return open_latents(options.data, split, recipe.diffusion, options.base.scale);
    const models::NetworkConfig& dit = recipe.model.dit;
    MadeUpLatents made;
    made.sizes = options.synthetic;
    made.process = recipe.diffusion.process;
    if (dit.in_channels > 0)
      made.channels = dit.in_channels - (recipe.diffusion.video_to_world() ? 1 : 0);
    if (dit.out_channels > 0) made.channels = dit.out_channels;
    if (dit.text_embed_dim > 0) made.text_width = dit.text_embed_dim;
    return make_up_latents(made);
  }

  void unify(const RunOptions& options, std::span<const std::unique_ptr<Dataset>> folders,
             std::span<const DataSource> sources) const override {
    if (!options.base.scale) share_scale(folders, sources, options.recipe.diffusion.whitening);
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

  data::Entry full_sample(const Recipe& recipe) const override {
    const models::NetworkConfig& dit = recipe.model.dit;
    const auto& p = dit.patch_size;
    std::array<std::int64_t, 3> most{};
    for (std::size_t i = 0; i < 3; ++i)
      most[i] = dit.max_size[i] / p[i];
    std::int64_t tokens = std::min(recipe.data.tokens, most[0] * most[1] * most[2]);
    std::array<std::int64_t, 3> grid{};
    while (!make_grid(tokens, most, grid))
      --tokens;
    data::Entry entry;
    entry.frames = static_cast<int>(grid[0]) * p[0];
    entry.height = static_cast<int>(grid[1]) * p[1];
    entry.width = static_cast<int>(grid[2]) * p[2];
    return entry;
  }

  double sample_bytes(const Recipe& recipe, const data::Entry& sample) const override {
    const models::NetworkConfig& dit = recipe.model.dit;
    return 4.0 * dit.out_channels * sample.frames * sample.height * sample.width +
           4.0 * recipe.text_tokens(sample.text_tokens) * dit.text_embed_dim;
  }

  void check_layout(const Recipe& recipe, const nn::NetworkLayout& layout) const override {
    layout.check(recipe.model.dit.num_layers, recipe.model.dit.heads());
  }
  double text_dropout(const Recipe& recipe) const override { return recipe.diffusion.text_dropout; }
  int text_padding(const Recipe& recipe) const override { return recipe.diffusion.text_padding; }
  bool has_stages() const override { return true; }
  int* blocks(ModelRecipe& model) const override { return &model.dit.num_layers; }
  const models::NetworkConfig* network(const ModelRecipe& model) const override {
    return &model.dit;
  }
  std::vector<int> block_kinds(const ModelRecipe& model) const override {
    return models::block_kinds(model.dit);
  }
  models::PartWork part_work(const Recipe& recipe) const override {
    const data::Entry sample = full_sample(recipe);
    return models::part_work(
        recipe.model.dit,
        {{sample.frames, sample.height, sample.width, 0, 0, recipe.text_tokens(0)}},
        recipe.compute());
  }

  std::vector<models::TpProduct> tp_products(const ModelRecipe& model) const override {
    return model.dit.architecture->tp_products(model.dit);
  }
  std::vector<std::string> adapter_targets(const Recipe& recipe) const override {
    return models::lora_target_names(recipe.model.dit, recipe.lora);
  }
  bool has_graphs() const override { return true; }
  std::unique_ptr<Objective> make_objective(const Recipe& recipe, Recompute recompute,
                                            Device device,
                                            const nn::NetworkLayout& layout) const override {
    return std::make_unique<DiffusionObjective>(recipe, recompute, device, layout);
  }
};

}  // namespace

void set_process(Recipe& recipe, models::Process process) {
  if (recipe.diffusion.process == process) return;
  const LevelDefaults& levels = kLevelDefaults[process.kind()];
  recipe.diffusion.process = process;
  recipe.diffusion.sigma_min = levels.least;
  recipe.diffusion.sigma_max = levels.most;
  recipe.validation.sigmas.assign(levels.validation.begin(), levels.validation.end());
}

bool DiffusionRecipe::video_to_world() const {
  return std::ranges::any_of(condition_frames, [](int frames) { return frames > 0; });
}

const Kind& diffusion_kind() {
  static const DiffusionKind kind;
  return kind;
}

}  // namespace vfm::train
