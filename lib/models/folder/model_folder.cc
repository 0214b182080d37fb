// SPDX-License-Identifier: Apache-2.0
#include "models/folder/model_folder.h"

#include <utility>

#include "base/error.h"
#include "io/file.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/other_models.h"
#include "models/folder/weight_files.h"

namespace vfm::models {
namespace {

std::unique_ptr<ModelLayout> open_layout(const std::string& path) {
  need_model_folder(path);
  refuse_other_models(path);
  for (const auto open : {open_pipeline, open_checkpoint, open_files})
    if (auto layout = open(path)) return layout;
  refuse_part_of_other(path);
  if (io::file_exists(io::join_path(path, "config.json")))
    return std::make_unique<ModelLayout>(path);
  if (as_usage([&] { return has_model_weights(path); })) return std::make_unique<ModelLayout>(path);
  fail_usage(
      "'{}' holds no model: it is neither a diffusers pipeline (model_index.json), nor one of its "
      "components (config.json), nor NVIDIA's own checkpoint, nor files of Wan, nor what vfm-train "
      "writes",
      path);
}

}  // namespace

ModelFolder::ModelFolder(const std::string& path, ModelChoice choice)
    : layout_(open_layout(path)), choice_(std::move(choice)) {
  if (choice_.part == kFirstNetwork) choice_.part = layout_->networks().front();
}

bool ModelFolder::has_adapters() const {
  return is_checkpoint() && models::has_adapters(folder());
}

std::string ModelFolder::absolute_path() const {
  return absolute_path_of(folder());
}

const HfComponent& ModelFolder::part(const std::string& name) const {
  std::unique_ptr<HfComponent>& opened = parts_[name];
  if (!opened) opened = std::make_unique<HfComponent>(layout_->folder_of(name));
  return *opened;
}

const HfComponent& ModelFolder::component() const {
  if (!component_) {
    if (!is_checkpoint()) refuse_part_of_other(layout_->folder_of(choice_.part));
    const HfComponent& found = part(choice_.part);
    if (!choice_.types.empty()) found.need_type(choice_.types);
    component_ = &found;
  }
  return *component_;
}

std::string ModelFolder::config_path() const {
  return component().config_path();
}

void ModelFolder::verify(int rank, int ranks) const {
  if (!verified_) layout_->verify(rank, ranks);
  verified_ = true;
}

const io::TensorSet& ModelFolder::weights() const {
  verify();
  return stand_ ? stand_->weights() : tensors();
}

bool ModelFolder::averaged() const {
  if (choice_.average && !average_) average_ = layout_->average();
  return average_ != nullptr;
}

const io::TensorSet& ModelFolder::tensors() const {
  if (stand_) return stand_->tensors();
  if (has_adapters())
    fail_usage("'{}' has adapters, not weights: begin from the model that they are of", folder());
  return averaged() ? *average_ : component().weights();
}

std::string ModelFolder::hash() const {
  return stand_ ? stand_->hash() : hash_model(type(), config(), weights());
}

}  // namespace vfm::models
