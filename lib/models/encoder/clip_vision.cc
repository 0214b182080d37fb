// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/clip_vision.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/vision_folder.h"

namespace vfm::models {
namespace {

const char* kProjection = "visual_projection";

class ClipVision final : public PictureTower {
 public:
  ClipVision(const PictureTowerConfig& config, int dim, const HfComponent& folder, DType compute,
             Device device)
      : PictureTower(config, folder, vision_names(folder), vision_layer_name, compute, device),
        dim_(dim) {
    const std::int64_t d = config.stack.width;
    std::vector<TensorTarget> targets = EncoderStack::tensors(config.stack, vision_layer_name);
    targets.push_back({"embeddings.class_embedding", {d}, {}});
    targets.push_back(
        {"embeddings.patch_embedding.weight", {d, 3, config.patch, config.patch}, {}});
    targets.push_back({"embeddings.position_embedding.weight", {tokens(), d}, {}});
    for (const char* norm : {"pre_layrnorm", "post_layernorm"})
      for (const char* part : {".weight", ".bias"})
        targets.push_back({norm + std::string(part), {d}, {}});
    targets.push_back({kProjection + std::string(".weight"), {dim, d}, {}});
    check_tensors(selected_, targets);
  }

  int dim() const override { return dim_; }
  std::int64_t tokens() const override { return std::int64_t{config_.side()} * config_.side() + 1; }

 protected:
  Tensor begin(ops::Tape& tape, const Tensor& pixels) const override {
    const PatchEmbedding embedding{"embeddings.patch_embedding", config_.patch,
                                   weights_.floats("embeddings.class_embedding"),
                                   weights_.floats("embeddings.position_embedding.weight")};
    const Tensor x = embed_pictures(tape, pixels, embedding, weights_);
    return weights_.norm(tape, x, "pre_layrnorm", config_.stack.epsilon);
  }
  Tensor end(ops::Tape& tape, const Tensor& x) const override {
    const Tensor first = first_tokens(x, tokens());
    return weights_.linear(
        tape, weights_.norm(tape, first, "post_layernorm", config_.stack.epsilon), kProjection);
  }

 private:
  const int dim_;
};

}  // namespace

std::unique_ptr<PictureTower> make_clip_vision(const HfComponent& folder, PictureSize size,
                                               DType compute, Device device) {
  const std::string what = fmt::format("'{}'", folder.config_path());
  const Json& vision = vision_config(folder);
  PictureTowerConfig fallback;
  fallback.stack = {
      .width = 768, .heads = 12, .feed_forward = 3072, .layers = 12, .epsilon = 1e-5f};
  fallback.image_size = 224;
  fallback.patch = 32;
  const auto config = PictureTowerConfig::from_json(vision, fallback, "quick_gelu", what);
  config.stack.check(what);
  config.need_size(size, what);
  const int dim =
      as_usage([&] { return positive_field(folder.config(), "projection_dim", 512, what); });
  return std::make_unique<ClipVision>(config, dim, folder, compute, device);
}

}  // namespace vfm::models
