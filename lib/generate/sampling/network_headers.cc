// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/network_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_config.h"

namespace vfm::generate {
namespace {

/// Of a file, a folder with one, or a run. `number`: of two networks the one that it is for.
void check_adapters(NetworkHeaders& network, const std::string& path, const GenerateJob& job,
                    std::optional<int> number) {
  const models::LoraFile file =
      models::retry_if_gone(path, [&] { return models::open_adapters(path, job.ema, number); });
  if (network.decoder)
    file.check(*network.decoder);
  else
    file.check(*network.dit);
  const auto bytes = static_cast<double>(file.bytes());
  (number == 1 ? network.second_bytes : network.file_bytes) += bytes;
  network.loading_bytes += bytes;
  if (job.lora.separate && !file.empty()) network.adapters.push_back(file.shapes(1));
}

/// One of the networks and its adapters.
void read_headers(NetworkHeaders& network, const models::OpenedModel& opened,
                  const GenerateJob& job, std::optional<int> number) {
  const models::ModelFolder& model = opened.folder();
  Faults& faults = network.faults;
  faults.look([&] {
    models::check_headers(model, opened.config());
    (number == 1 ? network.second_bytes : network.file_bytes) +=
        static_cast<double>(model.tensors().bytes());
    network.loading_bytes = std::max(network.loading_bytes,
                                     static_cast<double>(models::loading_bytes(model.tensors())));
    if (!model.is_checkpoint() && number != 1) network.trained = models::stored_type(model);
  });
  if (model.has_adapters())
    faults.look([&] { check_adapters(network, model.folder(), job, number); });
  for (const models::AdapterChoice::Set& set : job.lora.sets)
    faults.look([&] { check_adapters(network, set.path, job, number); });
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
  if (model.layout().networks().size() < 2) {
    read_headers(network, opened, job, {});
    return network;
  }
  read_headers(network, opened, job, 0);
  const auto first = std::exchange(network.adapters, {});
  read_headers(network, models::OpenedModel(job.model, job.ema, models::kSecondNetwork), job, 1);
  network.file_bytes = std::max(network.file_bytes, network.second_bytes);
  if (first.size() > network.adapters.size()) network.adapters = first;
  return network;
}

}  // namespace vfm::generate
