// SPDX-License-Identifier: Apache-2.0
#include "models/folder/checkpoint.h"

#include "base/error.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/network_json.h"
#include "models/folder/adapted_model.h"
#include "models/folder/load_tensors.h"

namespace vfm::models {
namespace {

/// The checkpoint that `path` means; "" if it is neither one nor a run.
std::string checkpoint_at(const std::string& path) {
  const auto has = [&](const char* name) { return io::file_exists(io::join_path(path, name)); };
  return has("COMPLETE") || has("checkpoints") ? find_checkpoint(path) : "";
}

/// The model that a checkpoint's adapters were trained on, and they on it.
void load_adapted(LoadedModel& loaded, const AdapterChoice& choice, Device device) {
  const Json init = loaded.train.value("init", Json());
  const std::string path = adapted_model(loaded.train, loaded.folder, choice.base);
  const InitialModel base = open_adapted(path, "transformer", network_class_names());
  if (const std::string hash = base.hash(); get_string(init, "hash") != hash)
    fail_usage("'{}' is not the model that the adapters of '{}' are of: its hash is {}, not {}",
               path, loaded.folder, hash, get_string(init, "hash").value_or("known"));
  loaded.network =
      make_network(network_config_from_json(base.config()), 0, loaded.compute, device, false);
  load_parameters(base.weights(), loaded.parameters());
  AdapterChoice own;
  own.sets = {{loaded.folder}};
  own.separate = choice.separate;
  add_adapters(loaded, own, loaded.ema);
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

void AdapterChoice::check_for(const std::string& folder, bool autoregressive, bool adapted) const {
  if (!base.empty() && !adapted)
    fail_usage("'{}' has weights of its own: a base is for runs that train adapters", folder);
  if (mode_chosen && sets.empty() && !adapted)
    fail_usage("'{}' has no adapters that could be merged or separate: give some (--lora)", folder);
  if (sets.empty()) return;
  if (autoregressive)
    fail_usage("adapters are for diffusion models, and this one is autoregressive");
  if (adapted)
    fail_usage("'{}' has adapters of its own: give the model under them for others", folder);
}

LoraFile open_adapters(const std::string& path, bool ema) {
  const std::string run = checkpoint_at(path);
  if (run.empty()) return LoraFile(path);
  if (!has_adapters(run)) fail_usage("'{}' has no adapters: it is a model of its own", run);
  LoraFile file(lora_folder(run));
  const std::string state = io::join_path(run, "state");
  if (ema && io::SafetensorsSet::exists(state, "ema"))
    file.use_values(std::make_unique<io::SafetensorsSet>(state, "ema"));
  return file;
}

void add_adapters(LoadedModel& model, const AdapterChoice& choice, bool ema) {
  choice.check_for(model.folder, model.decoder != nullptr, !model.lora.is_null());
  std::vector<CountedAdapters> adapters;
  Json described = Json::array(), paths = Json::array();
  for (const AdapterChoice::Set& set : choice.sets) {
    adapters.push_back(retry_if_gone(set.path, [&]() -> CountedAdapters {
      if (const std::string run = checkpoint_at(set.path); !run.empty()) verify_checkpoint(run);
      return {open_adapters(set.path, ema), set.scale};
    }));
    const LoraFile& file = adapters.back().file;
    described.push_back({{"hash", file.hash()},
                         {"scale", set.scale},
                         {"mode", choice.separate ? "separate" : "merged"}});
    paths.push_back(file.path());
  }
  adapt(*model.network, adapters, choice.separate);
  model.lora = described.size() == 1 ? described.front() : described;
  model.lora_path = paths.size() == 1 ? paths.front() : paths;
}

namespace {

LoadedModel load_once(const std::string& path, bool ema, std::optional<DType> compute,
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
  loaded.complete = io::hash_file(io::join_path(folder, "COMPLETE"));
  const bool decoder = get_string(config, "_class_name") == kDecoderClass;
  adapters.check_for(folder, decoder, has_adapters(folder));
  if (has_adapters(folder)) {
    load_adapted(loaded, adapters, device);
    return loaded;
  }
  if (decoder)
    loaded.decoder = std::make_unique<CausalDecoder>(decoder_config_from_json(config), 0, *compute,
                                                     device, false);
  else
    loaded.network = make_network(network_config_from_json(config), 0, *compute, device, false);
  const io::SafetensorsSet set =
      ema ? io::SafetensorsSet(state, "ema")
          : io::SafetensorsSet(io::join_path(folder, "model"), kWeightsName);
  load_parameters(set, loaded.parameters());
  return loaded;
}

}  // namespace

LoadedModel load_model(const std::string& path, bool ema, std::optional<DType> compute,
                       Device device, const AdapterChoice& adapters) {
  return retry_if_gone(path, [&] { return load_once(path, ema, compute, device, adapters); });
}

}  // namespace vfm::models
