// SPDX-License-Identifier: Apache-2.0
#include "models/folder/model_config.h"

#include "base/error.h"
#include "base/json.h"
#include "models/cosmos/autoencoder.h"
#include "models/cosmos/config_json.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/network_json.h"
#include "models/folder/config_json.h"
#include "models/folder/load_tensors.h"
#include "models/tokenizer_family.h"

namespace vfm::models {
namespace {

/// The parameters of a model, which are not there: no memory is touched.
struct CheckParameters {
  const io::TensorSet& tensors;

  void operator()(const NetworkConfig& config) const {
    check_tensors(tensors, make_network(config, 0, DType::bf16, Device::cpu, false)->parameters());
  }
  void operator()(const DecoderConfig& config) const {
    check_tensors(tensors, CausalDecoder(config, 0, DType::bf16, Device::cpu, false).parameters());
  }
  void operator()(const CosmosConfig& config) const {
    check_tensors(tensors,
                  CosmosAutoencoder(config, 0, DType::bf16, Device::cpu, false).parameters());
  }
};

}  // namespace

std::vector<std::string_view> generator_class_names() {
  std::vector<std::string_view> names = network_class_names();
  names.push_back(kDecoderClass);
  return names;
}

std::vector<std::string_view> model_class_names() {
  std::vector<std::string_view> names = generator_class_names();
  for (const TokenizerFamily* one : tokenizer_families())
    if (one->trained) names.push_back(one->name);
  return names;
}

ModelConfig read_model_config(const ModelFolder& model) {
  const std::string &type = model.type(), path = model.config_path();
  const Json& config = model.config();
  return as_usage([&]() -> ModelConfig {
    const TokenizerFamily* const family = find_tokenizer_family(type);
    if (family && family->trained) return cosmos_config_from_json(config, "'" + path + "'");
    return in_file(path, [&]() -> ModelConfig {
      if (type == kDecoderClass) return decoder_config_from_json(config);
      return network_config_from_json(config);
    });
  });
}

void check_headers(const ModelFolder& model, const ModelConfig& config) {
  as_usage([&] { std::visit(CheckParameters{model.tensors()}, config); });
}

}  // namespace vfm::models
