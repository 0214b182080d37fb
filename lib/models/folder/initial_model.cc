// SPDX-License-Identifier: Apache-2.0
#include "models/folder/initial_model.h"

#include <filesystem>

#include "base/error.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/folder/checkpoint_folder.h"

namespace vfm::models {

InitialModel::InitialModel(const std::string& path, const std::string& component,
                           const std::vector<std::string_view>& known, bool average)
    : path_(path), want_average_(average) {
  const auto has = [&](const char* name) { return io::file_exists(io::join_path(path, name)); };
  std::string folder = path;
  if (HfPipeline::is_one(path)) {
    folder = HfPipeline(path).folder_of(component);
  } else if (has("COMPLETE") || has("checkpoints")) {
    checkpoint_ = find_checkpoint(path);
    folder = io::join_path(checkpoint_, "model");
  } else if (io::file_exists(path) && !has("config.json")) {
    fail_usage(
        "'{}' holds no model: it is neither a diffusers pipeline (model_index.json), nor one of "
        "its "
        "components (config.json), nor what vfm-train writes",
        path);
  }
  component_ = std::make_unique<HfComponent>(folder);
  component_->need_type(known);
}

std::string InitialModel::absolute_path() const {
  namespace fs = std::filesystem;
  fs::path path = fs::absolute(checkpoint_.empty() ? path_ : checkpoint_).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "model/" is "model"
  return path.string();
}

const io::TensorSet& InitialModel::weights() const {
  if (!checkpoint_.empty() && !verified_) verify_checkpoint(checkpoint_);
  verified_ = true;
  return stand_ ? stand_->weights() : tensors();
}

bool InitialModel::averaged() const {
  return want_average_ && !checkpoint_.empty() &&
         io::SafetensorsSet::exists(io::join_path(checkpoint_, "state"), "ema");
}

const io::TensorSet& InitialModel::tensors() const {
  if (stand_) return stand_->tensors();
  if (checkpoint_.empty()) return component_->weights();
  if (has_adapters(checkpoint_))
    fail_usage("'{}' has adapters, not weights: begin from the model that they are of",
               checkpoint_);
  if (!average_ && averaged())
    average_ = std::make_unique<io::SafetensorsSet>(io::join_path(checkpoint_, "state"), "ema");
  return average_ ? *average_ : component_->weights();
}

std::string InitialModel::hash() const {
  return stand_ ? stand_->hash() : hash_model(component_->type(), config(), weights());
}

}  // namespace vfm::models
