// SPDX-License-Identifier: Apache-2.0
#include "train/state/beginning.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/dit/architecture.h"
#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_model.h"
#include "models/folder/load_tensors.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_reading.h"
#include "train/checkpoint/generation_facts.h"
#include "train/data/blend.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/run_folder.h"
#include "train/state/next_stage.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

models::Origin origin_in(const Json& train) {
  return models::Origin::from_json(train.value("init", Json()));
}

models::ModelChoice choose(std::string_view part) {
  return {.part = std::string(part), .types = models::model_class_names()};
}

/// What a run that begins from a checkpoint of ours, or is `begun`, keeps of its recipe. A key that
/// is not there has its default.
DiffusionRecipe diffusion_of(const std::string& checkpoint, bool begun) {
  const Json train = models::read_train_json(checkpoint);
  const Json recipe = train.value("recipe", Json());
  const Json theirs = recipe.is_object() ? recipe.value("diffusion", Json()) : Json();
  if (!theirs.is_object()) return {};
  Json kept = Json::object();
  for (const char* key : {"text_padding", "condition_frames", "whitening"})
    if (!theirs.value(key, Json()).is_null()) kept[key] = theirs[key];
  const std::string text = dump_json({{"diffusion", kept}});  // which is YAML
  DiffusionRecipe diffusion;
  if (!kept.empty())
    diffusion = make_recipe(parse_yaml(text, models::train_json_name(checkpoint))).diffusion;
  if (begun) diffusion.shift = get_number(theirs, "shift").value_or(diffusion.shift);
  return diffusion;
}

/// Of a pipeline `part`.
models::ModelFolder open_initial(const std::string& folder, std::string_view part,
                                 const std::string& under = {}) {
  return models::open_model(folder, choose(part), under);
}

std::string_view part_of(const Recipe& recipe) {
  return kind_of(recipe.model.type).pipeline_part();
}

/// The checkpoint of adapters that `path` means; "" if it is none.
std::string adapters_at(const std::string& path) {
  const std::string checkpoint = models::checkpoint_at(path);
  return !checkpoint.empty() && models::has_adapters(checkpoint) ? checkpoint : "";
}

/// The options of the adapters that the checkpoint trained.
models::LoraOptions adapters_of(const Json& train, const std::string& checkpoint) {
  const std::string what = "'lora' of " + models::train_json_name(checkpoint);
  const Json recipe = train.value("recipe", Json::object());
  const Json lora = recipe.is_object() ? recipe.value("lora", Json()) : Json();
  models::LoraOptions adapters;
  adapters.rank = static_cast<int>(need_integer(lora, "rank", what));
  adapters.alpha = need_number(lora, "alpha", what);
  for (const Json& target : lora.value("targets", Json::array()))
    if (target.is_string()) adapters.targets.push_back(target.get<std::string>());
  return adapters;
}

/// The adapters that a run goes on with, or went on with when it began; of rank 0 if with none.
models::LoraOptions adapters_to_go_on(const RunOptions& options, bool begun) {
  const std::string checkpoint = adapters_at(begun ? options.out : options.init);
  if (checkpoint.empty()) return {};
  const Json train = models::read_train_json(checkpoint);
  if (begun && origin_in(train).adapters_path.empty()) return {};
  return adapters_of(train, checkpoint);
}

/// Whether a run that remembers `path` was begun from the folder `init`, or a checkpoint in it.
bool is_from(const fs::path& path, const std::string& init) {
  if (path.empty() || init.empty()) return false;
  const fs::path given = whole_path(init);
  return whole_path(path) == given || whole_path(path.parent_path()) == given / "checkpoints" / "";
}

/// A model that weights are read from, and what was given as the model under its adapters.
struct Found {
  models::ModelFolder model;
  std::string under = {};
};

/// Opens the model that a run remembers as `known`, when options.init is given for it.
Found open_known(const models::Origin& known, const RunOptions& options) {
  const std::string& init = options.init;
  const std::string& under = options.init_under;
  const std::string_view part = part_of(options.recipe);
  if (!options.earlier.empty()) {  // that began from it, or from adapters that were merged into it
    if (adapters_at(known.path).empty())
      return {open_initial(under.empty() ? known.path : under, part)};
    return {open_initial(known.path, part, under), under};
  }
  if (!known.adapters_path.empty() &&
      (is_from(known.adapters_path, init) || !adapters_at(init).empty()))
    return {open_initial(under.empty() ? known.path : under, part)};
  return {open_initial(is_from(known.path, init) && io::path_exists(known.path) ? known.path : init,
                       part, under),
          under};
}

/// Opens what the weights of a new run are read from; where `adapters`, a checkpoint of such, go
/// on, it is under them.
Found open_beginning(const RunOptions& options, const std::string& adapters) {
  const std::string& under = options.init_under;
  const std::string_view part = part_of(options.recipe);
  if (adapters.empty()) return {open_initial(options.init, part, under), under};
  return {models::open_under(adapters, under, choose(part))};
}

std::string adapters_to_begin_from(const RunOptions& options) {
  return options.go_on_adapters ? adapters_at(options.init) : "";
}

/// What rank 0 has found and tells the others. Folders; "": there is none.
struct Source {
  std::string model, under, adapters;
};

/// Some ranks have opened a set, each byte of which one of them reads for all. A collective.
dist::Verdict read_together(dist::World& world, const io::TensorSet* set,
                            const nn::ParameterList& parameters) {
  std::vector<models::RangeTarget> targets;
  for (nn::Parameter* parameter : parameters)
    targets.push_back(models::range_target(*parameter));
  if (world.size() == 1)
    return attempt_on_all_ranks(world,
                                [&] { as_usage([&] { models::load_ranges(*set, targets); }); });
  CheckpointReading reading(world, set);
  dist::Verdict verdict =
      attempt_on_all_ranks(world, [&] { as_usage([&] { reading.check(targets); }); });
  return verdict.rank < 0 ? reading.try_load(targets) : verdict;
}

/// Some ranks open the source, verify it together, and read its weights for all. Then `act` is
/// called on rank 0 with what it has opened. A collective.
dist::Verdict read_source(dist::World& world, Source source, std::string_view part,
                          const nn::ParameterList& weights, const nn::ParameterList& adapters,
                          const std::function<void(const models::ModelFolder&)>& act) {
  for (std::string* text : {&source.model, &source.under, &source.adapters})
    *text = dist::broadcast(world, *text);
  std::optional<models::ModelFolder> model;
  std::optional<models::LoraFile> lora;
  const io::TensorSet* set = nullptr;
  dist::Verdict verdict = attempt_on_all_ranks(world, [&] {
    const int number = CheckpointReading::reader_number(world),
              readers = CheckpointReading::reader_count(world);
    if (number < 0) return;
    model.emplace(open_initial(source.model, part, source.under));
    model->verify(number, readers);
    if (const models::ModelFolder* const under = model->under()) under->verify(number, readers);
    // Adapters are merged into what is under them, which that compares with its hash.
    as_usage([&] {
      set = model->has_adapters() ? &model->weights() : &model->tensors();
      if (!source.adapters.empty()) lora.emplace(models::open_adapters(source.adapters, true));
    });
  });
  if (verdict.rank < 0) verdict = read_together(world, set, weights);
  if (verdict.rank < 0 && !source.adapters.empty())
    verdict = read_together(world, lora ? &lora->tensors() : nullptr, adapters);
  if (verdict.rank >= 0) return verdict;
  return attempt_on_all_ranks(world, [&] {
    if (world.rank() == 0) act(*model);
  });
}

/// What a diffusion network of `model` is trained with further.
void check_facts(const models::ModelFolder& model, const models::NetworkConfig& network,
                 const models::ModelFacts& facts) {
  if (facts.scale && facts.scale->channels() != static_cast<std::size_t>(network.out_channels))
    fail_usage("'{}' has a scale of {} channels, and the network makes {}", model.folder(),
               facts.scale->channels(), network.out_channels);
}

Beginning read_once(const RunOptions& options, std::string_view part, bool opens_weights) {
  const bool begun = is_begun(options.out, options.force);
  const models::ModelFolder model = begun ? models::ModelFolder(options.out, choose(part))
                                          : open_initial(options.init, part, options.init_under);
  // Refuses what has none, before any work.
  if (!begun && opens_weights) as_usage([&] { model.tensors(); });
  Beginning beginning;
  beginning.model = models::read_model_config(model);
  if (std::holds_alternative<models::CosmosConfig>(beginning.model)) return beginning;
  const auto* network = std::get_if<models::NetworkConfig>(&beginning.model);
  if (options.go_on_adapters) beginning.adapters = adapters_to_go_on(options, begun);
  beginning.facts = as_usage([&] { return models::read_facts(model, models::FactsFor::training); });
  if (network) check_facts(model, *network, beginning.facts);
  if (model.is_checkpoint()) {
    beginning.diffusion = diffusion_of(model.folder(), begun);
  } else {
    beginning.diffusion.text_padding = beginning.facts.text_padding;
    const models::ForeignNetwork* foreign = network ? network->architecture->foreign : nullptr;
    if (foreign && foreign->pipeline && network->video_to_world())
      beginning.diffusion.condition_frames.assign(foreign->pipeline->condition_frames.begin(),
                                                  foreign->pipeline->condition_frames.end());
  }
  // A new run is trained with the noise levels that the model is sampled with. A begun one may have
  // a shift of its own for sampling.
  if (!begun) beginning.diffusion.shift = beginning.facts.sampling.scheduler_shift();
  return beginning;
}

void check_once(const RunOptions& options) {
  const bool begun = is_begun(options.out, options.force);
  if (begun && options.recipe.lora.rank == 0) return;
  const models::ModelFolder model =
      (begun ? open_known(origin_in(models::read_train_json(models::find_checkpoint(options.out))),
                          options)
             : open_beginning(options, adapters_to_begin_from(options)))
          .model;
  models::check_headers(model, models::read_model_config(model));
}

}  // namespace

Beginning read_beginning(const RunOptions& options, std::string_view part, bool opens_weights) {
  if (!options.earlier.empty())
    return models::retry_if_gone(options.earlier, [&] { return read_stage(options); });
  return models::retry_if_gone(options.init,
                               [&] { return read_once(options, part, opens_weights); });
}

void check_initial(const RunOptions& options) {
  if (!options.init.empty()) models::retry_if_gone(options.init, [&] { check_once(options); });
}

void check_continues(const Json& train, const RunOptions& options, const Recipe& recipe,
                     const std::string& data_fingerprint) {
  check_continues_earlier(train, options);
  const std::vector<std::string> changes = changed_settings(train["recipe"], recipe);
  if (!changes.empty())
    fail_usage(
        "'{}' was begun with another recipe: {}; restore it, choose another folder (-o), or start "
        "over with --force",
        options.out, fmt::join(changes, "; "));
  if (get_string(train, "data_fingerprint") != data_fingerprint)
    fail_usage(
        "'{}' was begun with other data than '{}'; choose another folder (-o), or start over with "
        "--force",
        options.out, name_data(options, "', '"));
  if (!options.earlier.empty()) return;
  const models::Origin known = origin_in(train);
  const std::string &from = known.path, &init = options.init;
  if (init.empty() && from.empty()) return;
  const auto is_same = [&] {
    if (is_from(from, init) || is_from(known.adapters_path, init)) return true;
    if (init.empty() || from.empty() || !io::file_exists(init)) return false;
    // load_base() compares the hashes of what is under adapters.
    return recipe.lora.rank > 0 ||
           open_initial(init, part_of(recipe), options.init_under).hash() == known.hash;
  };
  if (!is_same())
    fail_usage(
        "'{}' was begun from {}, not from {}; give the same --init, choose another folder (-o), or "
        "start over with --force",
        options.out, from.empty() ? "new weights" : "'" + from + "'",
        init.empty() ? "new weights" : "'" + init + "'");
}

void check_packing(const Json& train, const std::string& run) {
  const Json known = train.value("packing", Json());
  if (known == static_cast<int>(data::Packing::blocks)) return;
  fail_usage(
      "'{}' was begun with packs (\"packing\": {}) that this version cannot make: continue with "
      "the version that began it, choose another folder (-o), or start over with --force",
      run, dump_json(known));
}

void say_begins(const RunOptions& options, const Recipe& recipe, const Dataset& data) {
  log_info("beginning from '{}'", options.init);
  for (const std::string& words : other_parts(options.base, data.info(), options.init))
    log_warning("{}", words);
  if (const int tokens = recipe.text_padding(); tokens > 0)
    log_info("texts are filled up to {} ('{}.text_padding')", counted(tokens, "token"),
             kind_of(recipe.model.type).section());
}

void say_goes_on(const Json& train, const Recipe& recipe, const std::string& checkpoint,
                 std::int64_t last) {
  const auto step = train["state"]["step"].get<std::int64_t>();
  if (step > last)
    log_warning("'{}' is of step {}, and the run ends at {} ({}): there is nothing to do",
                checkpoint, step, last, describe_setting(recipe, "train.steps"));
  if (step >= last) return;
  const std::vector<std::string> changed =
      changed_settings(train["recipe"], recipe, Compared::free);
  const auto length = std::ranges::find_if(
      changed, [](const std::string& words) { return words.starts_with("train.steps:"); });
  if (!changed.empty()) log_info("with {}", fmt::join(changed, "; "));
  log_warning("goes on after step {} of {}, from '{}'{}", step, last, checkpoint,
              length == changed.end() || recipe.schedule.shape == "constant"
                  ? ""
                  : fmt::format("; {}: the schedule of the learning rate now ends there", *length));
}

void say_begins_again(const RunOptions& options) {
  if (options.force || !options.synthetic.empty()) return;
  if (io::file_exists(io::join_path(options.out, "recipe.yaml")))
    log_warning("the earlier run in '{}' left no checkpoint: it begins again", options.out);
}

void say_stopped(const RunOptions& options, std::int64_t step, std::int64_t last,
                 const std::string& newest) {
  if (!options.synthetic.empty()) return log_warning("ended after step {} of {}", step, last);
  const bool saved = newest == checkpoint_path(options.out, step);
  log_warning("ended after step {} of {}{}; the same command {}{}", step, last,
              saved ? ", saved" : " without saving",
              newest.empty() ? "begins again: it has no checkpoint"
                             : fmt::format("goes on from '{}'", newest),
              saved ? "" : " (SIGTERM and SIGUSR1 save and end)");
}

void check_run(const RunOptions& options, const Recipe& recipe) {
  if (recipe.schedule.warmup > recipe.train.steps)
    log_warning(
        "the run ends in the warm-up: {} and {}, so the learning rate reaches {:.3g} of its {:.3g}",
        describe_setting(recipe, "schedule.warmup"), describe_setting(recipe, "train.steps"),
        recipe.optimizer.lr * static_cast<double>(recipe.train.steps) /
            static_cast<double>(recipe.schedule.warmup),
        recipe.optimizer.lr);
  check_initial(options);
  if (!options.out.empty()) refuse_foreign_files(options.out);
}

models::Origin load_initial(dist::World& world, const RunOptions& options,
                            const nn::ParameterList& weights, const nn::ParameterList& adapters) {
  models::Origin origin;
  Source source;
  const auto find = [&] {
    if (world.rank() != 0) return;
    source.adapters = adapters_to_begin_from(options);
    const Found found = open_beginning(options, source.adapters);
    source.model = found.model.folder();
    source.under = found.under;
  };
  const auto remember = [&](const models::ModelFolder& model) {
    origin = {.path = model.absolute_path()};
    if (source.adapters.empty()) {
      origin.hash = model.hash();
      return;
    }
    models::verify_checkpoint(source.adapters);
    origin.hash = models::hash_under(model, source.adapters);
    origin.adapters_path = models::absolute_path_of(source.adapters);
    origin.adapters_hash = models::open_adapters(source.adapters, true).hash();
  };
  const auto newest = [&] {
    return dist::broadcast(world, world.rank() == 0 ? models::newest_of_run(options.init) : "");
  };
  // As models::retry_if_gone() does, on all ranks or none.
  for (int tries = 5;; --tries) {
    const std::string before = newest();
    dist::Verdict verdict = attempt_on_all_ranks(world, find);
    if (verdict.rank < 0)
      verdict = read_source(world, source, part_of(options.recipe), weights, adapters, remember);
    if (verdict.rank < 0) return origin;
    if (tries == 1 || before.empty() || newest() == before) fail_on_all_ranks(world, verdict);
    if (world.rank() == 0)
      log_info("'{}' has trained on; its newest checkpoint is used", options.init);
  }
}

models::Origin load_base(dist::World& world, const RunOptions& options, const models::Origin& known,
                         const nn::ParameterList& weights) {
  models::Origin origin = known;
  Source source;
  on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    const Found found = open_known(known, options);
    source.model = found.model.folder();
    source.under = found.under;
  });
  const auto compare = [&](const models::ModelFolder& model) {
    const std::string hash = model.hash();
    if (hash != known.hash)
      fail_usage(
          "'{}' is not the model whose adapters this run trains, '{}': its hash is {}, it was {}; "
          "give the same --init, choose another folder (-o), or start over with --force",
          options.earlier.empty() ? options.init : model.folder(), known.path, hash, known.hash);
    origin.path = model.absolute_path();
  };
  const dist::Verdict verdict =
      read_source(world, source, part_of(options.recipe), weights, {}, compare);
  if (verdict.rank >= 0) fail_on_all_ranks(world, verdict);
  return origin;
}

}  // namespace vfm::train
