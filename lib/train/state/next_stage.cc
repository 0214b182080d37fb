// SPDX-License-Identifier: Apache-2.0
#include "train/state/next_stage.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "dist/together.h"
#include "io/file.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/model_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/pack_order.h"
#include "train/run_folder.h"
#include "train/state/beginning.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

constexpr const char *kState = "the state in train.json", *kStage = "a stage in train.json";

/// The run folder that a checkpoint lies in.
fs::path run_of(const std::string& checkpoint) {
  return whole_path(checkpoint).parent_path().parent_path().parent_path() / "";
}

std::string hash_of_complete(const std::string& checkpoint) {
  return io::hash_file(io::join_path(checkpoint, "COMPLETE"));
}

/// Whether `earlier` is the checkpoint of the stage, or the run that has it, maybe in another
/// place.
bool is_same_checkpoint(const Json& stage, const std::string& earlier) {
  const std::string path = get_string(stage, "checkpoint").value_or("");
  if (path.empty()) return false;
  if (whole_path(path) == whole_path(earlier) || run_of(path) == whole_path(earlier)) return true;
  const std::string hash = get_string(stage, "complete").value_or("");
  std::vector<std::string> there = models::list_checkpoints(earlier);
  if (there.empty()) there = {earlier};
  for (const std::string& checkpoint : there)
    if (io::file_exists(io::join_path(checkpoint, "COMPLETE")) &&
        hash_of_complete(checkpoint) == hash)
      return true;
  return false;
}

data::PackingOptions packs_of(const Json& train, const Recipe& recipe) {
  const std::string what = "the recipe in the train.json of the run to continue";
  const Json data = train.value("recipe", Json::object()).value("data", Json::object());
  DataRecipe earlier = recipe.data;
  earlier.tokens = need_integer(data, "tokens", what);
  earlier.window = static_cast<int>(need_integer(data, "window", what));
  return earlier.pack_options();
}

}  // namespace

EarlierRun find_earlier(dist::World& world, const RunOptions& options, const Dataset& data) {
  EarlierRun earlier;
  std::string text;
  on_all_ranks(world, [&] {
    if (world.rank() == 0) earlier.checkpoint = models::find_checkpoint(options.earlier);
  });
  earlier.checkpoint = dist::broadcast(world, earlier.checkpoint);
  const std::string damage = damage_of(world, earlier.checkpoint);
  on_all_ranks(world, [&] {
    if (!damage.empty())
      fail("{}: '{}' cannot be continued; --continue takes an earlier checkpoint too", damage,
           earlier.checkpoint);
    if (world.rank() != 0) return;
    text = io::read_file(io::join_path(earlier.checkpoint, "train.json"));
    earlier.stages = stages_of(parse_json(text, models::train_json_name(earlier.checkpoint)));
    Json last = {{"checkpoint", models::absolute_path_of(earlier.checkpoint)},
                 {"complete", hash_of_complete(earlier.checkpoint)}};
    last.update(earlier.stages->back());
    earlier.stages->back() = std::move(last);
  });
  earlier.train = parse_json(dist::broadcast(world, text), "the train.json of the run to continue");
  earlier.stages = parse_json(dist::broadcast(world, dump_json(earlier.stages)), "its stages");
  earlier.same_data = get_string(earlier.train, "data_fingerprint") == data.fingerprint();
  return earlier;
}

Beginning read_stage(const RunOptions& options) {
  if (!options.out.empty() && (whole_path(options.earlier) == whole_path(options.out) ||
                               run_of(options.earlier) == whole_path(options.out)))
    fail_usage("'{}' is the run to continue itself: its next stage needs a folder of its own (-o)",
               options.out);
  const bool begun = is_begun(options.out, options.force);
  const std::string checkpoint =
      begun ? models::find_checkpoint(options.out) : models::find_checkpoint(options.earlier);
  const models::ModelFolder model(checkpoint, {.types = models::model_class_names()});
  Beginning beginning;
  beginning.model = models::read_model_config(model);
  if (!std::holds_alternative<models::CosmosConfig>(beginning.model))
    beginning.facts =
        as_usage([&] { return models::read_facts(model, models::FactsFor::training); });
  const Json train = models::read_train_json(checkpoint);
  const std::string name = models::train_json_name(checkpoint);
  const Json recipe = train.value("recipe", Json());
  if (!recipe.is_object()) fail_usage("{} has no recipe: it is not of vfm-train", name);
  // JSON is YAML.
  beginning.earlier = {parse_yaml(dump_json(recipe), name), begun ? "" : options.earlier};
  return beginning;
}

void check_continues_earlier(const Json& train, const RunOptions& options) {
  const Json stages = earlier_stages(train);
  if (stages.empty() && options.earlier.empty()) return;
  if (stages.empty())
    fail_usage(
        "'{}' is a run that continues none, and does not go on with --continue '{}': choose "
        "another folder (-o), or start over with --force",
        options.out, options.earlier);
  const std::string path = get_string(stages.back(), "checkpoint").value_or("?");
  if (options.earlier.empty())
    fail_usage("'{}' continues '{}': give the same --continue, or choose another folder (-o)",
               options.out, path);
  if (!is_same_checkpoint(stages.back(), options.earlier))
    fail_usage(
        "'{}' continues '{}', not '{}'; give the same --continue, choose another folder (-o), or "
        "start over with --force",
        options.out, path, options.earlier);
}

Json earlier_stages(const Json& train) {
  const Json stages = train.value("stages", Json::array());
  return stages.is_array() ? stages : Json::array();
}

Json stages_of(const Json& train) {
  Json stages = earlier_stages(train);
  std::int64_t samples = 0, tokens = 0;
  for (const Json& stage : stages) {
    samples += need_integer(stage, "samples", kStage);
    tokens += need_integer(stage, "tokens", kStage);
  }
  const RunState state = RunState::from_json(train.at("state"), kState);
  stages.push_back({{"first_step", first_step_after(stages)},
                    {"last_step", state.step},
                    {"samples", state.samples - samples},
                    {"tokens", state.tokens - tokens},
                    {"data_fingerprint", train.value("data_fingerprint", Json())},
                    {"trained", train.value("trained", Json())},
                    {"recipe", train.value("recipe", Json())}});
  return stages;
}

std::int64_t first_step_after(const Json& stages) {
  return stages.empty() ? 0 : need_integer(stages.back(), "last_step", kStage);
}

std::vector<std::string> recipe_changes(const Json& earlier, const Json& later) {
  std::vector<std::string> changes;
  for (const auto& [section, keys] : later.items()) {
    if (section == "parallel") continue;  // which is not of the run
    const Json before = earlier.value(section, Json::object());
    Json all = keys;
    all.update(before);
    const auto words = [](const Json& of, const std::string& key) {
      return of.contains(key) ? dump_json(of[key]) : "(default)";  // it is left out (Field::quiet)
    };
    for (const auto& one : all.items())
      if (const std::string old = words(before, one.key()), now = words(keys, one.key());
          old != now)
        changes.push_back(fmt::format("{}.{}: {} -> {}", section, one.key(), old, now));
  }
  return changes;
}

DataPosition place_after(const EarlierRun& earlier, const RunOptions& options, const Dataset& data,
                         const Recipe& recipe) {
  if (!earlier.same_data) return {};
  const DataPosition place = RunState::from_json(earlier.train->at("state"), kState).data;
  check_packing(earlier.train, options.earlier);
  const data::PackingOptions before = packs_of(earlier.train, recipe),
                             now = recipe.data.pack_options();
  if (before.tokens == now.tokens && before.window == now.window) return place;
  const DataPosition begin{.epoch = place.epoch, .block = place.block};
  const auto order_of = [&](const data::PackingOptions& packs) {
    PackOrder order(data.order(recipe.train.seed, packs.packing), data.lengths(recipe.model),
                    packs);
    order.seek(begin);
    return order;
  };
  std::size_t seen = 0;  // of the block
  for (PackOrder order = order_of(before); order.position().pack < place.pack;)
    seen += order.next().size();
  PackOrder order = order_of(now);
  for (std::size_t again = 0; again < seen;)
    again += order.next().size();
  return order.position();
}

void check_last_step(std::int64_t first, const Recipe& recipe) {
  constexpr std::int64_t kMost = 4294967295;
  if (first + recipe.train.steps > kMost)
    fail_usage("{}, after the {} of earlier stages: there are numbers for {} steps",
               describe_setting(recipe, "train.steps"), first, kMost);
}

}  // namespace vfm::train
