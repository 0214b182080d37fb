// A run of vfm-train, which means its newest checkpoint, or one of its checkpoints
// (models/folder/checkpoint_folder.h).
// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"
#include "io/safetensors.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/model_layout.h"

namespace vfm::models {
namespace {

constexpr const char* kAverage = "ema";

class Checkpoint final : public ModelLayout {
 public:
  using ModelLayout::ModelLayout;
  bool is_checkpoint() const override { return true; }
  std::string folder_of(const std::string& /*part*/) const override {
    return io::join_path(folder(), "model");
  }
  std::unique_ptr<io::TensorSet> average() const override {
    const std::string state = io::join_path(folder(), "state");
    if (!io::SafetensorsSet::exists(state, kAverage)) return nullptr;
    return std::make_unique<io::SafetensorsSet>(state, kAverage);
  }
  void verify(int rank, int ranks) const override { verify_checkpoint(folder(), rank, ranks); }
};

}  // namespace

std::unique_ptr<ModelLayout> open_checkpoint(const std::string& path) {
  const std::string checkpoint = checkpoint_at(path);
  return checkpoint.empty() ? nullptr : std::make_unique<Checkpoint>(checkpoint);
}

}  // namespace vfm::models
