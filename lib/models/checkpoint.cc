// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint.h"

#include "base/error.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/decoder_json.h"
#include "models/dit_json.h"
#include "models/initial_model.h"
#include "models/load_tensors.h"

namespace vfm::models {
namespace {

/// The model that a checkpoint's adapters were trained on, and they on it.
void load_adapted(LoadedModel& loaded, const AdapterChoice& choice, Device device) {
  const Json init = loaded.train.value("init", Json());
  const std::string was = get_string(init, "path").value_or("");
  const std::string path = choice.base.empty() ? was : choice.base;
  if (!io::file_exists(path))
    fail_usage("'{}' has adapters of the model '{}', which is not there: say where it is (--base)",
               loaded.folder, path);
  InitialModel base(path, "transformer", network_class_names());
  if (const std::string hash = base.hash(); get_string(init, "hash") != hash)
    fail_usage("'{}' is not the model that the adapters of '{}' are of: its hash is {}, not {}",
               path, loaded.folder, hash, get_string(init, "hash").value_or("known"));
  loaded.network =
      make_network(dit_config_from_json(base.config()), 0, loaded.compute, device, false);
  load_parameters(base.weights(), loaded.parameters());
  add_adapters(loaded, {loaded.folder, choice.use, {}}, loaded.ema);
}

}  // namespace

DType trained_in(const Json& train) {
  if (!train.contains("recipe") || !train["recipe"].is_object()) return DType::f32;
  const Json model = train["recipe"].value("model", Json::object());
  return model.is_object() && model.value("compute", Json()) == "bf16" ? DType::bf16 : DType::f32;
}

const nn::ParameterList& LoadedModel::parameters() const {
  return decoder ? decoder->parameters() : network->parameters();
}

Device LoadedModel::device() const {
  return decoder ? decoder->device() : network->device();
}

void add_adapters(LoadedModel& model, const AdapterChoice& choice, bool ema) {
  if (model.decoder)
    fail_usage("adapters are for diffusion models, and this one is autoregressive");
  if (!model.lora.is_null())
    fail_usage("'{}' has adapters of its own: give the model under them for others", model.folder);
  const auto has = [&](const char* name) {
    return io::file_exists(io::join_path(choice.path, name));
  };
  std::string path = choice.path, run;
  if (has("COMPLETE") || has("checkpoints")) {
    run = find_checkpoint(path);
    verify_checkpoint(run);
    if (!has_adapters(run)) fail_usage("'{}' has no adapters: it is a model of its own", run);
    path = lora_folder(run);
  }
  LoraFile file(path);
  const std::string state = io::join_path(run, "state");
  if (ema && !run.empty() && io::SafetensorsSet::exists(state, "ema"))
    file.use_values(std::make_unique<io::SafetensorsSet>(state, "ema"));
  adapt(*model.network, file, choice.use);
  model.lora = {{"hash", file.hash()},
                {"scale", choice.use.strength},
                {"mode", choice.use.separate ? "separate" : "merged"}};
  model.lora_path = file.path();
}

LoadedModel load_model(const std::string& path, bool ema, std::optional<DType> compute,
                       Device device, const AdapterChoice& adapters) {
  const std::string folder = find_checkpoint(path);
  verify_checkpoint(folder);
  const auto read = [&](const char* name) {
    const std::string file = io::join_path(folder, name);
    return parse_json(io::read_file(file), fmt::format("'{}'", file));
  };
  Json train = read("train.json");
  const std::string state = io::join_path(folder, "state");
  ema = ema && io::SafetensorsSet::exists(state, "ema");
  if (!compute) compute = trained_in(train);
  const Json config = read("model/config.json");
  LoadedModel loaded{nullptr, std::move(train), folder, ema, *compute};
  if (has_adapters(folder)) {
    load_adapted(loaded, adapters, device);
    return loaded;
  }
  if (!adapters.base.empty())
    fail_usage("'{}' has weights of its own: a base is for runs that train adapters", folder);
  if (get_string(config, "_class_name") == kDecoderClass)
    loaded.decoder =
        std::make_unique<Decoder>(decoder_config_from_json(config), 0, *compute, device, false);
  else
    loaded.network = make_network(dit_config_from_json(config), 0, *compute, device, false);
  const io::SafetensorsSet set =
      ema ? io::SafetensorsSet(state, "ema")
          : io::SafetensorsSet(io::join_path(folder, "model"), kWeightsName);
  load_parameters(set, loaded.parameters());
  return loaded;
}

}  // namespace vfm::models
