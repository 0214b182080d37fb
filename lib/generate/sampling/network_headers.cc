// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/network_headers.h"

#include <fmt/format.h>

#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/model_config.h"

namespace vfm::generate {
namespace {

/// Of a file, a folder with one, or a run.
void check_adapters(NetworkHeaders& network, const std::string& path, const GenerateJob& job) {
  const models::LoraFile file =
      models::retry_if_gone(path, [&] { return models::open_adapters(path, job.ema); });
  if (network.decoder)
    file.check(*network.decoder);
  else
    file.check(*network.dit);
  network.file_bytes += static_cast<double>(file.bytes());
  if (job.lora.separate) network.adapters.push_back(file.shapes(1));
}

}  // namespace

void Faults::finish() const {
  if (found_.size() == 1) throw Error(found_.front(), ErrorKind::usage);
  if (!found_.empty())
    fail_usage("{} parts of the model do not fit: {}", found_.size(), fmt::join(found_, "; "));
}

NetworkHeaders read_network(const GenerateJob& job, const models::OpenedModel& opened) {
  const models::ModelFolder& model = opened.folder();
  job.lora.check_for(model);
  NetworkHeaders network;
  network.type = model.type();
  const models::ModelConfig& config = opened.config();
  if (const auto* decoder = std::get_if<models::DecoderConfig>(&config))
    network.decoder = *decoder;
  else
    network.dit = std::get<models::NetworkConfig>(config);
  if (model.is_checkpoint()) network.trained = opened.facts().trained_in;
  network.faults.look([&] {
    models::check_headers(model, config);
    network.file_bytes += static_cast<double>(model.tensors().bytes());
    if (!model.is_checkpoint()) network.trained = models::stored_type(model);
  });
  if (model.has_adapters())
    network.faults.look([&] { check_adapters(network, model.folder(), job); });
  for (const models::AdapterChoice::Set& set : job.lora.sets)
    network.faults.look([&] { check_adapters(network, set.path, job); });
  return network;
}

}  // namespace vfm::generate
