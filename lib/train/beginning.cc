// SPDX-License-Identifier: Apache-2.0
#include "train/beginning.h"

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "models/checkpoint_folder.h"
#include "models/config_json.h"
#include "models/cosmos_autoencoder.h"
#include "models/cosmos_tokenizer.h"
#include "models/dit_json.h"
#include "models/hf_folder.h"
#include "models/hf_sampling.h"
#include "models/initial_model.h"
#include "models/load_tensors.h"
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

/// A checkpoint of ours. One from before a key was there has its default.
void read_run(const std::string& checkpoint, Beginning& beginning) {
  const std::string what = fmt::format("'{}'", io::join_path(checkpoint, "train.json"));
  const Json train = read_train(checkpoint);
  const auto member = [](const Json& value, const char* name) {
    return value.is_object() ? value.value(name, Json()) : Json();
  };
  const Json diffusion = member(member(train, "recipe"), "diffusion");
  std::vector<Setting> settings;
  for (const char* name : {"text_padding", "condition_frames", "whitening"}) {
    const Json value = member(diffusion, name);
    if (value.is_null()) continue;
    Setting& setting = settings.emplace_back();
    setting.key = fmt::format("diffusion.{}", name);
    setting.where = what;
    setting.list = value.is_array();
    for (const Json& item : setting.list ? value : Json::array({value}))
      setting.values.push_back(dump_json(item));
  }
  const DiffusionRecipe read = make_recipe(settings).diffusion;
  beginning.text_padding = read.text_padding;
  beginning.condition_frames = read.condition_frames;
  beginning.whitening = read.whitening;
  beginning.facts = facts_of_run(train, beginning.model, what);
}

/// Of a pipeline the tokenizer, or else the network.
models::InitialModel open_initial(const std::string& folder, bool tokenizer = false) {
  std::vector<std::string_view> known = models::network_class_names();
  known.insert(known.end(), {models::kCosmosContinuous, models::kCosmosDiscrete});
  return models::InitialModel(folder, tokenizer ? "vae" : "transformer", known);
}

std::string config_path(const models::InitialModel& model) {
  return io::join_path(model.component().folder(), "config.json");
}

models::DitConfig network_of(const models::InitialModel& model) {
  return as_usage([&] {
    return models::in_file(config_path(model),
                           [&] { return models::dit_config_from_json(model.config()); });
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

/// Where the model is that a run remembers as `known`, when `init` is given for it.
std::string place_of(const Json& known, const std::string& init) {
  const std::string path = get_string(known, "path").value_or("");
  return is_from(path, init) && io::file_exists(path) ? path : init;
}

std::string hash_in(const Json& known) {
  return get_string(known, "hash").value_or("");
}

void load(const models::InitialModel& model, const nn::ParameterList& parameters) {
  as_usage([&] { models::load_parameters(model.weights(), parameters); });
}

}  // namespace

Beginning read_beginning(const std::string& init, const std::string& out, bool force,
                         bool tokenizer) {
  const bool begun = is_begun(out, force);
  const models::InitialModel model = open_initial(begun ? out : init, tokenizer);
  if (!begun) as_usage([&] { model.tensors(); });  // refuses what has none, before any work
  Beginning beginning;
  if (is_tokenizer(model)) {
    beginning.autoencoder = autoencoder_of(model);
    return beginning;
  }
  beginning.model = network_of(model);
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

void check_initial(const RunOptions& options) {
  if (options.init.empty()) return;
  std::string source = options.init;
  if (is_begun(options.out, options.force)) {
    if (options.recipe.lora.rank == 0) return;
    const Json train = read_train(models::find_checkpoint(options.out));
    source = place_of(train.value("init", Json()), options.init);
  }
  const models::InitialModel model = open_initial(source, options.recipe.model.tokenizer());
  if (is_tokenizer(model)) {
    const models::CosmosAutoencoder network(autoencoder_of(model), 0, DType::bf16, Device::cpu,
                                            false);
    return as_usage([&] { models::check_tensors(model.tensors(), network.parameters()); });
  }
  const models::DitConfig config = network_of(model);
  as_usage([&] {
    models::check_tensors(
        model.tensors(),
        models::make_network(config, 0, DType::bf16, Device::cpu, false)->parameters());
  });
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
    if (is_from(from, init)) return true;
    if (init.empty() || from.empty() || !io::file_exists(init)) return false;
    // load_base() compares the hashes of what is under adapters.
    return recipe.lora.rank > 0 ||
           open_initial(init, recipe.model.tokenizer()).hash() == hash_in(known);
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
    fail_usage("{} ranks have no work with {} packs a step: set 'data.packs' to at least {}", ranks,
               recipe.data.packs, ranks);
  check_initial(options);
  if (!options.out.empty()) refuse_foreign_files(options.out);
}

Json load_initial(const RunOptions& options, const nn::ParameterList& parameters) {
  const models::InitialModel model = open_initial(options.init, options.recipe.model.tokenizer());
  load(model, parameters);
  return {{"path", model.absolute_path()}, {"hash", model.hash()}};
}

Json load_base(const std::string& init, const Json& known, const nn::ParameterList& parameters) {
  const models::InitialModel model = open_initial(place_of(known, init));
  const std::string hash = model.hash();
  if (hash != hash_in(known))
    fail_usage(
        "'{}' is not the model whose adapters this run trains, '{}': its hash is {}, it was {}; "
        "give the same --init, choose another --out, or begin again with --force",
        init, get_string(known, "path").value_or(""), hash, hash_in(known));
  load(model, parameters);
  return {{"path", model.absolute_path()}, {"hash", hash}};
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
