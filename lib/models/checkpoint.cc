// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/decoder_json.h"
#include "models/dit_json.h"
#include "models/initial_model.h"
#include "models/load_tensors.h"

namespace vfm::models {
namespace {

namespace fs = std::filesystem;

/// COMPLETE as name -> hash.
std::map<std::string, std::string> read_complete(const std::string& folder) {
  const std::string path = io::join_path(folder, "COMPLETE");
  if (!io::file_exists(path)) fail("checkpoint '{}' is not complete: it has no COMPLETE", folder);
  std::map<std::string, std::string> hashes;
  const std::string text = io::read_file(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    // 32 hex digits, two spaces, the name: as sha256sum and xxhsum write it.
    if (line.size() < 35 || line.compare(32, 2, "  ") != 0)
      fail("'{}' has a malformed line: '{}'", path, line.substr(0, 80));
    hashes[line.substr(34)] = line.substr(0, 32);
  }
  return hashes;
}

/// The model that a checkpoint's adapters were trained on, and they on it.
void load_adapted(LoadedModel& loaded, const AdapterChoice& choice, Device device) {
  const Json init = loaded.train.value("init", Json());
  const std::string was = get_string(init, "path").value_or("");
  const std::string path = choice.base.empty() ? was : choice.base;
  if (!io::file_exists(path))
    fail_usage("'{}' has adapters of the model '{}', which is not there: say where it is (--base)",
               loaded.folder, path);
  InitialModel base(path);
  if (const std::string hash = base.hash(); get_string(init, "hash") != hash)
    fail_usage("'{}' is not the model that the adapters of '{}' are of: its hash is {}, not {}",
               path, loaded.folder, hash, get_string(init, "hash").value_or("known"));
  loaded.network =
      make_network(dit_config_from_json(base.config()), 0, loaded.compute, device, false);
  std::vector<TensorTarget> targets;
  for (nn::Parameter* parameter : loaded.parameters())
    targets.push_back(value_target(*parameter));
  load_tensors(base.weights(), targets);
  add_adapters(loaded, {loaded.folder, choice.use, {}}, loaded.ema);
}

}  // namespace

bool is_checkpoint_name(std::string_view name) {
  constexpr std::string_view kStep = "step-";
  if (!name.starts_with(kStep) || name.size() == kStep.size()) return false;
  return std::ranges::all_of(name.substr(kStep.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> list_checkpoints(const std::string& run) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(io::join_path(run, "checkpoints"), error))
    if (is_checkpoint_name(entry.path().filename().string()) && entry.is_directory())
      folders.push_back(entry.path().string());
  // Names hold the step with leading zeros, as long as eight digits are enough.
  std::ranges::sort(folders, {}, [](const std::string& f) { return std::pair(f.size(), f); });
  return folders;
}

void verify_checkpoint(const std::string& folder) {
  const auto hashes = read_complete(folder);
  for (const auto& [name, hash] : hashes) {
    const std::string path = io::join_path(folder, name);
    if (!io::file_exists(path)) fail("checkpoint '{}' is damaged: '{}' is missing", folder, name);
    if (io::hash_file(path) != hash)
      fail("checkpoint '{}' is damaged: '{}' is not as it was written", folder, name);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && name != "COMPLETE" && !hashes.count(name))
      fail("checkpoint '{}' is damaged: COMPLETE does not list '{}'", folder, name);
  }
}

std::string find_checkpoint(const std::string& path) {
  if (io::file_exists(io::join_path(path, "COMPLETE"))) return path;
  const std::vector<std::string> folders = list_checkpoints(path);
  if (folders.empty())
    fail_usage(
        "'{}' holds no checkpoint: give the --out folder of vfm-train, or one of its "
        "checkpoints/step-* folders",
        path);
  return folders.back();
}

std::string lora_folder(const std::string& checkpoint) {
  return io::join_path(checkpoint, "lora");
}

bool has_adapters(const std::string& checkpoint) {
  return io::SafetensorsSet::exists(lora_folder(checkpoint), kLoraName);
}

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
