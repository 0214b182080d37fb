// SPDX-License-Identifier: Apache-2.0
#include "train/beginning.h"

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "io/file.h"
#include "models/cosmos/autoencoder.h"
#include "models/cosmos/tokenizer.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/network_json.h"
#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/config_json.h"
#include "models/folder/hf_folder.h"
#include "models/folder/hf_sampling.h"
#include "models/folder/initial_model.h"
#include "models/folder/load_tensors.h"
#include "train/kind.h"
#include "train/run_folder.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

/// Whether the run goes on at a checkpoint.
bool is_begun(const std::string& out, bool force) {
  return !force && !out.empty() && !models::list_checkpoints(out).empty();
}

Json read_train(const std::string& checkpoint) {
  const std::string path = io::join_path(checkpoint, "train.json");
  return parse_json(io::read_file(path), fmt::format("'{}'", path));
}

const std::vector<int> kCosmosConditionFrames = {0, 1, 2};

/// The settings of a checkpoint's recipe, of the section and the keys that are named.
std::vector<Setting> settings_in(const Json& train, const char* section,
                                 const std::vector<const char*>& keys, const std::string& what) {
  const auto member = [](const Json& value, const char* name) {
    return value.is_object() ? value.value(name, Json()) : Json();
  };
  const Json values = member(member(train, "recipe"), section);
  std::vector<Setting> settings;
  for (const char* name : keys) {
    const Json value = member(values, name);
    if (value.is_null()) continue;
    Setting& setting = settings.emplace_back();
    setting.key = fmt::format("{}.{}", section, name);
    setting.where = what;
    setting.list = value.is_array();
    for (const Json& item : setting.list ? value : Json::array({value}))
      setting.values.push_back(item.is_string() ? item.get<std::string>() : dump_json(item));
  }
  return settings;
}

/// A checkpoint of ours. One from before a key was there has its default.
void read_run(const std::string& checkpoint, Beginning& beginning) {
  const std::string what = fmt::format("'{}'", io::join_path(checkpoint, "train.json"));
  const Json train = read_train(checkpoint);
  const std::vector<Setting> settings =
      settings_in(train, "diffusion", {"text_padding", "condition_frames", "whitening"}, what);
  const DiffusionRecipe read = make_recipe(settings).diffusion;
  beginning.text_padding = read.text_padding;
  beginning.condition_frames = read.condition_frames;
  beginning.whitening = read.whitening;
  beginning.facts = facts_of_run(train, beginning.model, what);
}

std::vector<std::string_view> known_types() {
  std::vector<std::string_view> known = models::network_class_names();
  known.insert(known.end(),
               {models::kDecoderClass, models::kCosmosContinuous, models::kCosmosDiscrete});
  return known;
}

/// Of a pipeline `part`.
models::InitialModel open_initial(const std::string& folder, std::string_view part,
                                  const std::string& under = {}) {
  return models::open_adapted(folder, std::string(part), known_types(), true, under);
}

std::string_view part_of(const Recipe& recipe) {
  return kind_of(recipe.model.type).pipeline_part();
}

/// The checkpoint of adapters that `path` means; "" if it is none.
std::string adapters_at(const std::string& path) {
  if (models::HfPipeline::is_one(path) || !io::file_exists(path)) return {};
  const bool ours = io::file_exists(io::join_path(path, "COMPLETE")) ||
                    io::file_exists(io::join_path(path, "checkpoints"));
  if (!ours) return {};
  const std::string checkpoint = models::find_checkpoint(path);
  return models::has_adapters(checkpoint) ? checkpoint : "";
}

/// Where the adapters were that a run remembers as those it went on with; "" if there were none.
std::string adapters_in(const Json& known) {
  return get_string(known.is_object() ? known.value("adapters", Json()) : Json(), "path")
      .value_or("");
}

/// The options of the adapters that the checkpoint trained.
models::LoraOptions adapters_of(const Json& train, const std::string& checkpoint) {
  const std::string what = fmt::format("'lora' of '{}'", io::join_path(checkpoint, "train.json"));
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
  const Json train = read_train(checkpoint);
  if (begun && adapters_in(train.value("init", Json())).empty()) return {};
  return adapters_of(train, checkpoint);
}

std::string config_path(const models::InitialModel& model) {
  return io::join_path(model.component().folder(), "config.json");
}

models::NetworkConfig network_of(const models::InitialModel& model) {
  return as_usage([&] {
    return models::in_file(config_path(model),
                           [&] { return models::network_config_from_json(model.config()); });
  });
}

bool is_decoder(const models::InitialModel& model) {
  return model.component().type() == models::kDecoderClass;
}

models::DecoderConfig decoder_of(const models::InitialModel& model) {
  return as_usage([&] {
    return models::in_file(config_path(model),
                           [&] { return models::decoder_config_from_json(model.config()); });
  });
}

bool is_tokenizer(const models::InitialModel& model) {
  return models::is_cosmos_tokenizer(model.component().type());
}

models::CosmosConfig autoencoder_of(const models::InitialModel& model) {
  return as_usage([&] {
    return models::CosmosConfig::from_json(model.config(), fmt::format("'{}'", config_path(model)));
  });
}

/// Whether a run that remembers `path` was begun from the folder `init`, or a checkpoint in it.
bool is_from(const fs::path& path, const std::string& init) {
  if (path.empty() || init.empty()) return false;
  // With or without a slash at the end; by any links; what is gone as it was written.
  const auto plain = [](const fs::path& name) {
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(fs::absolute(name), error);
    return (error ? fs::absolute(name).lexically_normal() : whole) / "";
  };
  const fs::path given = plain(init);
  return plain(path) == given || plain(path.parent_path()) == given / "checkpoints" / "";
}

/// Opens the model that a run remembers as `known`, when options.init is given for it.
models::InitialModel open_known(const Json& known, const RunOptions& options) {
  const std::string path = get_string(known, "path").value_or("");
  const std::string& init = options.init;
  const std::string_view part = part_of(options.recipe);
  if (const std::string adapters = adapters_in(known);
      !adapters.empty() && (is_from(adapters, init) || !adapters_at(init).empty()))
    return open_initial(options.init_under.empty() ? path : options.init_under, part);
  return open_initial(is_from(path, init) && io::file_exists(path) ? path : init, part,
                      options.init_under);
}

/// Opens what the weights of a new run are read from; where adapters go on, it is under them.
models::InitialModel open_beginning(const RunOptions& options) {
  const std::string_view part = part_of(options.recipe);
  const std::string adapters = options.go_on_adapters ? adapters_at(options.init) : "";
  if (adapters.empty()) return open_initial(options.init, part, options.init_under);
  return open_initial(models::adapted_model(read_train(adapters), adapters, options.init_under),
                      part);
}

std::string hash_in(const Json& known) {
  return get_string(known, "hash").value_or("");
}

void load(const models::InitialModel& model, const nn::ParameterList& parameters) {
  as_usage([&] { models::load_parameters(model.weights(), parameters); });
}

Beginning read_once(const RunOptions& options, std::string_view part) {
  const std::string& init = options.init;
  const bool begun = is_begun(options.out, options.force);
  const models::InitialModel model =
      begun ? models::InitialModel(options.out, std::string(part), known_types())
            : open_initial(init, part, options.init_under);
  if (!begun) as_usage([&] { model.tensors(); });  // refuses what has none, before any work
  Beginning beginning;
  if (is_tokenizer(model)) {
    beginning.autoencoder = autoencoder_of(model);
    return beginning;
  }
  if (is_decoder(model)) {
    beginning.decoder = decoder_of(model);
    if (!model.checkpoint().empty()) read_run(model.checkpoint(), beginning);
    return beginning;
  }
  beginning.model = network_of(model);
  if (options.go_on_adapters) beginning.adapters = adapters_to_go_on(options, begun);
  if (!model.checkpoint().empty()) {
    read_run(model.checkpoint(), beginning);
    return beginning;
  }
  if (beginning.model.type != models::NetworkType::dit) return beginning;  // no other's
  beginning.text_padding = models::kCosmosTextTokens;
  if (beginning.model.video_to_world()) beginning.condition_frames = kCosmosConditionFrames;
  beginning.facts.trained = beginning.model.max_size;
  if (models::HfPipeline::is_one(init)) beginning.facts = facts_of_pipeline(init, beginning.model);
  return beginning;
}

void check_once(const RunOptions& options) {
  const bool begun = is_begun(options.out, options.force);
  if (begun && options.recipe.lora.rank == 0) return;
  const models::InitialModel model =
      begun ? open_known(read_train(models::find_checkpoint(options.out)).value("init", Json()),
                         options)
            : open_beginning(options);
  if (is_tokenizer(model)) {
    const models::CosmosAutoencoder network(autoencoder_of(model), 0, DType::bf16, Device::cpu,
                                            false);
    return as_usage([&] { models::check_tensors(model.tensors(), network.parameters()); });
  }
  if (is_decoder(model)) {
    const models::CausalDecoder decoder(decoder_of(model), 0, DType::bf16, Device::cpu, false);
    return as_usage([&] { models::check_tensors(model.tensors(), decoder.parameters()); });
  }
  const models::NetworkConfig config = network_of(model);
  as_usage([&] {
    models::check_tensors(
        model.tensors(),
        models::make_network(config, 0, DType::bf16, Device::cpu, false)->parameters());
  });
}

}  // namespace

Beginning read_beginning(const RunOptions& options, std::string_view part) {
  return models::retry_if_gone(options.init, [&] { return read_once(options, part); });
}

void check_initial(const RunOptions& options) {
  if (!options.init.empty()) models::retry_if_gone(options.init, [&] { check_once(options); });
}

void check_continues(const Json& train, const RunOptions& options, const Recipe& recipe,
                     const std::string& data_fingerprint) {
  const std::vector<std::string> changes = changed_settings(train["recipe"], recipe);
  if (!changes.empty())
    fail_usage(
        "'{}' was begun with another recipe: {}; restore it, choose another --out, or begin "
        "again with --force",
        options.out, fmt::join(changes, "; "));
  if (get_string(train, "data_fingerprint") != data_fingerprint)
    fail_usage(
        "'{}' was begun with other data than '{}'; choose another --out, or begin again with "
        "--force",
        options.out, options.data);
  const Json known = train.value("init", Json());
  const std::string from = get_string(known, "path").value_or(""), &init = options.init;
  if (init.empty() && from.empty()) return;
  const auto is_same = [&] {
    if (is_from(from, init) || is_from(adapters_in(known), init)) return true;
    if (init.empty() || from.empty() || !io::file_exists(init)) return false;
    // load_base() compares the hashes of what is under adapters.
    return recipe.lora.rank > 0 ||
           open_initial(init, part_of(recipe), options.init_under).hash() == hash_in(known);
  };
  if (!is_same())
    fail_usage(
        "'{}' was begun from {}, not from {}; give the same --init, choose another --out, or "
        "begin again with --force",
        options.out, from.empty() ? "new weights" : "'" + from + "'",
        init.empty() ? "new weights" : "'" + init + "'");
}

void check_run(const RunOptions& options, const Recipe& recipe, int ranks) {
  if (ranks > recipe.data.packs)
    fail_usage("{} ranks have no work with {} packs a step: {}, must be at least {}", ranks,
               recipe.data.packs, describe_setting(recipe, "data.packs"), ranks);
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

Json load_initial(const RunOptions& options, const nn::ParameterList& parameters) {
  const models::InitialModel model = open_beginning(options);
  load(model, parameters);
  Json known = {{"path", model.absolute_path()}, {"hash", model.hash()}};
  const std::string adapters = options.go_on_adapters ? adapters_at(options.init) : "";
  if (adapters.empty()) return known;
  if (const Json before = read_train(adapters).value("init", Json());
      hash_in(before) != hash_in(known))
    fail_usage("'{}' is not the model that the adapters of '{}' are of: its hash is {}, not {}",
               model.absolute_path(), adapters, hash_in(known), hash_in(before));
  known["adapters"] = {{"path", fs::absolute(adapters).lexically_normal().string()},
                       {"hash", models::open_adapters(adapters, true).hash()}};
  return known;
}

void load_adapters(const RunOptions& options, const nn::ParameterList& adapters) {
  models::retry_if_gone(options.init, [&] {
    const std::string checkpoint = adapters_at(options.init);
    models::verify_checkpoint(checkpoint);
    as_usage([&] { models::open_adapters(checkpoint, true).load(adapters); });
  });
}

Json load_base(const RunOptions& options, const Json& known, const nn::ParameterList& parameters) {
  const models::InitialModel model = open_known(known, options);
  const std::string hash = model.hash();
  if (hash != hash_in(known))
    fail_usage(
        "'{}' is not the model whose adapters this run trains, '{}': its hash is {}, it was {}; "
        "give the same --init, choose another --out, or begin again with --force",
        options.init, get_string(known, "path").value_or(""), hash, hash_in(known));
  load(model, parameters);
  Json found = known;
  found["path"] = model.absolute_path();
  found["hash"] = hash;
  return found;
}

Tensor broadcast_tensor(dist::World& world, const Tensor& tensor) {
  const Tensor host = tensor.to(Device::cpu);
  world.broadcast({host.data<std::byte>(), host.bytes()});
  return host;
}

void share_parameters(dist::World& world, const nn::ParameterList& parameters) {
  for (const nn::Parameter* parameter : parameters)
    parameter->write(broadcast_tensor(world, parameter->read()));
}

}  // namespace vfm::train
