// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/siglip_vision.h"

#include <vector>

#include "base/error.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/siglip_head.h"
#include "models/encoder/vision_folder.h"

namespace vfm::models {
namespace {

class SiglipVision final : public PictureTower {
 public:
  SiglipVision(const PictureTowerConfig& config, const HfComponent& folder, DType compute,
               Device device)
      : PictureTower(config, folder, vision_names(folder), vision_layer_name, compute, device) {
    const std::int64_t d = config.stack.width;
    std::vector<TensorTarget> targets = siglip_targets(config);
    targets.push_back(
        {"embeddings.patch_embedding.weight", {d, 3, config.patch, config.patch}, {}});
    targets.push_back({"embeddings.patch_embedding.bias", {d}, {}});
    targets.push_back({"embeddings.position_embedding.weight", {tokens(), d}, {}});
    check_tensors(selected_, targets);
  }

  int dim() const override { return config_.stack.width; }
  std::int64_t tokens() const override { return std::int64_t{config_.side()} * config_.side(); }

 protected:
  Tensor begin(ops::Tape& tape, const Tensor& pixels) const override {
    const PatchEmbedding embedding{"embeddings.patch_embedding",
                                   config_.patch,
                                   {},
                                   weights_.floats("embeddings.position_embedding.weight")};
    return embed_pictures(tape, pixels, embedding, weights_);
  }
  Tensor end(ops::Tape& tape, const Tensor& x) const override {
    return siglip_head(tape, x, tokens(), config_, weights_);
  }
};

}  // namespace

std::unique_ptr<PictureTower> make_siglip_vision(const HfComponent& folder, PictureSize size,
                                                 DType compute, Device device) {
  const PictureTowerConfig config = siglip_config(folder, 224);
  config.need_size(size, fmt::format("'{}'", folder.config_path()));
  return std::make_unique<SiglipVision>(config, folder, compute, device);
}

}  // namespace vfm::models
