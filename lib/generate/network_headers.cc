// SPDX-License-Identifier: Apache-2.0
#include "generate/network_headers.h"

#include <fmt/format.h>

#include "generate/pipeline.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/network_json.h"
#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint.h"
#include "models/folder/config_json.h"
#include "models/folder/hf_folder.h"
#include "models/folder/load_tensors.h"

namespace vfm::generate {
namespace {

void check(NetworkHeaders& network, const io::TensorSet& weights) {
  if (network.decoder)
    models::check_tensors(
        weights,
        models::CausalDecoder(*network.decoder, 0, DType::bf16, Device::cpu, false).parameters());
  else
    models::check_tensors(
        weights,
        models::make_network(*network.dit, 0, DType::bf16, Device::cpu, false)->parameters());
  network.file_bytes += static_cast<double>(weights.bytes());
}

/// Of a file, a folder with one, or a run.
void check_adapters(NetworkHeaders& network, const std::string& path, const GenerateJob& job) {
  const models::LoraFile file =
      models::retry_if_gone(path, [&] { return models::open_adapters(path, job.ema); });
  file.check(*network.dit);
  network.file_bytes += static_cast<double>(file.bytes());
  if (job.lora.separate) network.adapter_parameters += file.parameters();
}

NetworkHeaders read_pipeline(const std::string& model, Faults& faults) {
  const models::HfComponent component(models::HfPipeline(model).folder_of("transformer"));
  NetworkHeaders network;
  network.type = component.type();
  network.dit = models::network_config_from_json(component.config());
  faults.look([&] {
    const io::TensorSet& weights = component.weights();
    check(network, weights);
    if (weights.tensors().front().dtype != "F32") network.trained = DType::bf16;
  });
  return network;
}

Json read_json(const std::string& folder, const char* name) {
  const std::string file = io::join_path(folder, name);
  return parse_json(io::read_file(file), "'" + file + "'");
}

/// Of a checkpoint of adapters: the model under them, and these.
NetworkHeaders read_adapted(const std::string& folder, const Json& train, const GenerateJob& job,
                            Faults& faults) {
  const models::InitialModel model =
      models::open_adapted(models::adapted_model(train, folder, job.lora.base), "transformer",
                           models::network_class_names());
  NetworkHeaders network;
  network.type = get_string(model.config(), "_class_name").value_or("");
  network.dit = models::network_config_from_json(model.config());
  faults.look([&] { check(network, model.tensors()); });
  faults.look([&] { check_adapters(network, folder, job); });
  return network;
}

NetworkHeaders read_weights(const std::string& folder, const Json& config, const GenerateJob& job,
                            Faults& faults) {
  NetworkHeaders network;
  network.type = get_string(config, "_class_name").value_or("");
  models::in_file(io::join_path(folder, "model/config.json"), [&] {
    if (network.type == models::kDecoderClass)
      network.decoder = models::decoder_config_from_json(config);
    else
      network.dit = models::network_config_from_json(config);
  });
  faults.look([&] {
    const std::string state = io::join_path(folder, "state");
    const bool ema = job.ema && io::SafetensorsSet::exists(state, "ema");
    check(network, ema ? io::SafetensorsSet(state, "ema")
                       : io::SafetensorsSet(io::join_path(folder, "model"), models::kWeightsName));
  });
  return network;
}

NetworkHeaders read_once(const GenerateJob& job, Faults& faults) {
  NetworkHeaders network;
  if (generate::is_pipeline(job.model)) {
    job.lora.check_for(job.model, false, false);
    network = read_pipeline(job.model, faults);
  } else {
    const std::string folder = models::find_checkpoint(job.model);
    const Json train = read_json(folder, "train.json");
    const Json config = read_json(folder, "model/config.json");
    const bool adapted = models::has_adapters(folder);
    job.lora.check_for(folder, get_string(config, "_class_name") == models::kDecoderClass, adapted);
    network = adapted ? read_adapted(folder, train, job, faults)
                      : read_weights(folder, config, job, faults);
    network.trained = models::trained_in(train);
  }
  for (const models::AdapterChoice::Set& set : job.lora.sets)
    faults.look([&] { check_adapters(network, set.path, job); });
  return network;
}

}  // namespace

void Faults::finish() const {
  if (found_.size() == 1) throw Error(found_.front(), ErrorKind::usage);
  if (!found_.empty())
    fail_usage("{} parts of the model do not fit: {}", found_.size(), fmt::join(found_, "; "));
}

NetworkHeaders read_network(const GenerateJob& job, Faults& faults) {
  NetworkHeaders network;
  Faults found;
  bool read = false;
  const auto try_to_read = [&] {
    read = false;
    found = {};
    network = read_once(job, found);
    read = true;
    found.finish();  // for retry_if_gone() to see: it may be all for a checkpoint that has gone
  };
  try {
    models::retry_if_gone(job.model, try_to_read);
  } catch (const Error&) {
    if (!read) throw;
  }
  faults.add(found);
  return network;
}

}  // namespace vfm::generate
