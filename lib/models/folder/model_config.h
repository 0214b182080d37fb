// Configurations of all models that are trained here, from config.json.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "models/cosmos/config.h"
#include "models/decoder/decoder.h"
#include "models/dit/network.h"
#include "models/folder/model_folder.h"

namespace vfm::models {

using ModelConfig = std::variant<NetworkConfig, DecoderConfig, CosmosConfig>;

/// The _class_name of all these models; and of those that generate.
std::vector<std::string_view> model_class_names();
std::vector<std::string_view> generator_class_names();

/// Throws Error{usage} naming the file and the field.
ModelConfig read_model_config(const ModelFolder& model);

/// Compares the model's tensors with `config`, by their headers. Throws Error{usage} that lists the
/// tensors that do not fit.
void check_headers(const ModelFolder& model, const ModelConfig& config);

}  // namespace vfm::models
