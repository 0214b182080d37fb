// A part of a pipeline of diffusers or transformers by itself: config.json and weights.
// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"
#include "models/folder/model_layout.h"

namespace vfm::models {
namespace {

class Component final : public ModelLayout {
 public:
  using ModelLayout::ModelLayout;
  bool has(const std::string& /*part*/) const override { return true; }
  std::string folder_of(const std::string& /*part*/) const override { return folder(); }
};

}  // namespace

std::unique_ptr<ModelLayout> open_component(const std::string& path) {
  if (!io::file_exists(io::join_path(path, "config.json"))) return nullptr;
  return std::make_unique<Component>(path);
}

}  // namespace vfm::models
