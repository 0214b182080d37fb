// SPDX-License-Identifier: Apache-2.0
#include "train/recipe.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "io/file.h"

namespace vfm::train {
namespace {

/// A field of the recipe under its key: how to set it and how to show it.
struct Field {
  std::string key;
  bool may_change;  ///< may differ between a checkpoint and the run that continues it
  std::function<void(const Setting&)> set;
  std::function<Json()> get;
};

[[noreturn]] void refuse(const Setting& setting, const std::string& allowed) {
  std::string text = fmt::format("{}", fmt::join(setting.values, ", "));
  if (setting.list) text = "[" + text + "]";
  fail_usage("'{}' in {} is {}, must be {}", setting.key, setting.where,
             text.empty() ? "empty" : "'" + text + "'", allowed);
}

/// The allowed values of a number. `open` excludes `low` itself.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open = false;

  bool holds(double x) const { return (open ? x > low : x >= low) && x <= high; }
  std::string text(std::string kind) const {
    const bool bounded_below = std::isfinite(low), bounded_above = std::isfinite(high);
    if (bounded_below) kind += fmt::format(" {} {}", open ? "above" : "of at least", low);
    if (bounded_above) kind += fmt::format("{} at most {}", bounded_below ? " and" : " of", high);
    return kind;
  }
};
constexpr Range kAny;
constexpr Range positive{0, std::numeric_limits<double>::infinity(), true};
constexpr Range at_least(double low) {
  return {low};
}
constexpr Range between(double low, double high) {
  return {low, high};
}

template <class T>
T parse_number(const Setting& setting, const std::string& text, const Range& range) {
  const std::string allowed = range.text(std::is_integral_v<T> ? "a whole number" : "a number");
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(static_cast<double>(value)) ||
      !range.holds(static_cast<double>(value)))
    refuse(setting, allowed);
  return value;
}

/// Collects the fields of one recipe, section by section. The addresses stay inside `recipe`.
class FieldList {
 public:
  std::vector<Field> fields;

  FieldList& section(const std::string& name) {
    prefix_ = name + ".";
    return *this;
  }
  /// Marks the last field as one that may change when a run continues.
  void may_change() { fields.back().may_change = true; }

  template <class T>
  FieldList& number(const char* name, T& value, Range range) {
    return add(
        name,
        [&value, range](const Setting& setting) {
          if (setting.list) refuse(setting, range.text("a number"));
          value = parse_number<T>(setting, setting.values[0], range);
        },
        [&value] { return Json(value); });
  }
  /// A list; `count` 0 is any length but none.
  template <class List>
  FieldList& numbers(const char* name, List& list, Range range) {
    return add(
        name,
        [&list, range](const Setting& setting) {
          using T = typename List::value_type;
          if (!setting.list || setting.values.empty()) refuse(setting, "a list [a, b, ...]");
          if constexpr (requires { list.resize(1); })
            list.resize(setting.values.size());
          else if (setting.values.size() != list.size())
            refuse(setting, fmt::format("a list of {} numbers", list.size()));
          for (std::size_t i = 0; i < list.size(); ++i)
            list[i] = parse_number<T>(setting, setting.values[i], range);
        },
        [&list] { return Json(list); });
  }
  FieldList& flag(const char* name, bool& value) {
    return add(
        name,
        [&value](const Setting& setting) {
          const std::string text = setting.list ? "" : setting.values[0];
          if (text != "true" && text != "false") refuse(setting, "true or false");
          value = text == "true";
        },
        [&value] { return Json(value); });
  }
  FieldList& choice(const char* name, std::string& value, std::vector<std::string> words) {
    return add(
        name,
        [&value, words](const Setting& setting) {
          if (setting.list ||
              std::find(words.begin(), words.end(), setting.values[0]) == words.end())
            refuse(setting, fmt::format("one of {}", fmt::join(words, ", ")));
          value = setting.values[0];
        },
        [&value] { return Json(value); });
  }

 private:
  FieldList& add(const char* name, std::function<void(const Setting&)> set,
                 std::function<Json()> get) {
    fields.push_back({prefix_ + name, false, std::move(set), std::move(get)});
    return *this;
  }
  std::string prefix_;
};

const std::vector<std::string> kModelTypes = {"dit", "stdit", "moviegen"};

void add_model_fields(FieldList& list, ModelRecipe& model) {
  models::DitConfig& dit = model.dit;
  list.section("model")
      .choice("type", model.type, kModelTypes)
      .number("in_channels", dit.in_channels, between(0, 4096))
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
  list.choice("compute", model.compute, {"f32", "bf16"})
      .choice("recompute", model.recompute, {"auto", "none", "elementwise", "block"})
      .may_change();
}

/// Those of the recipe's model.type.
std::vector<Field> fields_of(Recipe& r) {
  FieldList list;
  add_model_fields(list, r.model);
  list.section("diffusion")
      .number("p_mean", r.diffusion.p_mean, between(-20, 20))
      .number("p_std", r.diffusion.p_std, between(0, 20))
      .number("sigma_min", r.diffusion.sigma_min, positive)
      .number("sigma_max", r.diffusion.sigma_max, positive)
      .number("whitening", r.diffusion.whitening, between(0, 1))
      .number("loss_scale", r.diffusion.loss_scale, positive)
      .number("text_dropout", r.diffusion.text_dropout, between(0, 1))
      .flag("scale_video_noise", r.diffusion.scale_video_noise);
  list.section("data")
      .number("tokens", r.data.tokens, at_least(1))
      .number("packs", r.data.packs, between(1, 1 << 20))
      .number("window", r.data.window, between(1, 1 << 20))
      .number("micro_packs", r.data.micro_packs, between(0, 1 << 20))
      .may_change();
  list.section("optimizer")
      .number("lr", r.optimizer.lr, positive)
      .number("beta1", r.optimizer.beta1, between(0, 0.99999))
      .number("beta2", r.optimizer.beta2, between(0, 0.99999))
      .number("eps", r.optimizer.eps, positive)
      .number("weight_decay", r.optimizer.weight_decay, between(0, 1))
      .choice("moments", r.optimizer.moments, {"f32", "bf16"})
      .number("clip", r.optimizer.clip, at_least(0))
      .number("max_skips", r.optimizer.max_skips, at_least(0))
      .may_change();
  list.section("schedule")
      .number("warmup", r.schedule.warmup, at_least(0))
      .choice("shape", r.schedule.shape, {"constant", "linear", "cosine"})
      .number("final", r.schedule.final, between(0, 1));
  list.section("ema")
      .choice("mode", r.ema.mode, {"off", "decay", "power"})
      .number("decay", r.ema.decay, between(0, 0.9999999))
      .number("length", r.ema.length, between(0.01, 0.28))
      .number("every", r.ema.every, between(1, 1 << 20))
      .choice("place", r.ema.place, {"device", "host"})
      .may_change();
  list.section("validation").number("every", r.validation.every, at_least(0)).may_change();
  list.number("samples", r.validation.samples, at_least(1)).may_change();
  list.numbers("sigmas", r.validation.sigmas, positive).may_change();
  list.section("train").number("steps", r.train.steps, between(1, 4294967295)).may_change();
  list.number("seed", r.train.seed, at_least(0));
  list.number("checkpoint_every", r.train.checkpoint_every, at_least(1)).may_change();
  list.number("keep", r.train.keep, at_least(1)).may_change();
  list.number("log_every", r.train.log_every, at_least(1)).may_change();
  list.number("peak_tflops", r.train.peak_tflops, at_least(0)).may_change();
  return list.fields;
}

/// Letters to insert, remove or change (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j - 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// A key whose last word is exactly the one given (a section forgotten) counts as very near.
std::string nearest_key(const std::vector<Field>& fields, const std::string& key) {
  const auto distance = [&](const Field& field) {
    const bool same_leaf = field.key.ends_with("." + key.substr(key.rfind('.') + 1));
    return same_leaf ? std::size_t{0} : edit_distance(key.substr(0, 200), field.key);
  };
  return std::min_element(fields.begin(), fields.end(),
                          [&](const Field& a, const Field& b) { return distance(a) < distance(b); })
      ->key;
}

const Field* find_field(const std::vector<Field>& fields, const std::string& key) {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

/// Whether there is a type of model that has the key.
bool is_of_other_type(const std::string& key) {
  return std::ranges::any_of(kModelTypes, [&](const std::string& type) {
    Recipe other;
    other.model.type = type;
    return find_field(fields_of(other), key) != nullptr;
  });
}

/// What no single field can tell.
void check_together(const Recipe& recipe) {
  if (recipe.diffusion.sigma_min > recipe.diffusion.sigma_max)
    fail_usage("'diffusion.sigma_min' is {}, must be at most 'diffusion.sigma_max', {}",
               recipe.diffusion.sigma_min, recipe.diffusion.sigma_max);
  models::DitConfig dit = recipe.model.dit;  // 0 is not yet known, not wrong
  if (dit.in_channels == 0) dit.in_channels = 1;
  if (dit.out_channels == 0) dit.out_channels = dit.in_channels;
  if (dit.text_embed_dim == 0) dit.text_embed_dim = 1;
  dit.validate();
}

/// The recipe and the model that the run begins from.
void check_initial(const Recipe& recipe, const models::DitConfig& initial) {
  Recipe fitting = recipe;
  fitting.model.dit = initial;
  const std::vector<std::string> differences = changed_settings(to_json(fitting), recipe);
  if (!differences.empty())
    fail_usage("the recipe is not that of the model to begin from: {}; leave these out",
               fmt::join(differences, "; "));
}

}  // namespace

DType Recipe::compute() const {
  return model.compute == "bf16" ? DType::bf16 : DType::f32;
}

DType OptimizerRecipe::moment_type() const {
  return moments == "bf16" ? DType::bf16 : DType::f32;
}

Recipe make_recipe(std::span<const Setting> settings, const models::DitConfig* initial) {
  Recipe recipe;
  recipe.model.dit.in_channels = recipe.model.dit.out_channels = 0;
  recipe.model.dit.text_embed_dim = 0;
  if (initial) {
    recipe.model.dit = *initial;
    recipe.model.type = models::network_type_name(initial->type);
  }
  // First the type of the model: it decides which keys there are.
  for (const Setting& setting : settings)
    if (setting.key == "model.type") fields_of(recipe).front().set(setting);
  recipe.model.dit.type = models::parse_network_type(recipe.model.type);
  if (initial && recipe.model.dit.type != initial->type)
    fail_usage("'model.type' is {}, but the model to begin from is a {}", recipe.model.type,
               models::network_type_name(initial->type));
  const std::vector<Field> fields = fields_of(recipe);
  for (const Setting& setting : settings) {
    if (const Field* field = find_field(fields, setting.key)) {
      field->set(setting);
      continue;
    }
    if (is_of_other_type(setting.key))
      fail_usage("'{}' in {} is not for a 'model.type' of {}", setting.key, setting.where,
                 recipe.model.type);
    fail_usage("unknown key '{}' in {}; did you mean '{}'?", setting.key, setting.where,
               nearest_key(fields, setting.key));
  }
  if (initial) check_initial(recipe, *initial);
  check_together(recipe);
  return recipe;
}

Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides,
                   const models::DitConfig* initial) {
  std::string text;
  try {
    text = io::read_file(path);
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
  std::vector<Setting> settings = parse_yaml(text, fmt::format("'{}'", path));
  for (const std::string& argument : overrides)
    settings.push_back(parse_override(argument));
  return make_recipe(settings, initial);
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

std::vector<std::string> changed_settings(const Json& old, const Recipe& now) {
  Recipe copy = now, usual;
  usual.model.type = now.model.type;  // so that both have the same fields
  std::vector<std::string> changes;
  const std::vector<Field> fields = fields_of(copy), defaults = fields_of(usual);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.may_change) continue;
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
