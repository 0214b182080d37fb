// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/dinov2.h"

#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/encoder/encoder_folder.h"

namespace vfm::models {
namespace {

/// By EncoderPart.
constexpr std::array<const char*, 10> kDinoParts = {"attention.attention.query",
                                                    "attention.attention.key",
                                                    "attention.attention.value",
                                                    "attention.output.dense",
                                                    "norm1",
                                                    "norm2",
                                                    "mlp.fc1",
                                                    "mlp.fc2",
                                                    "layer_scale1.lambda1",
                                                    "layer_scale2.lambda1"};

std::string dino_layer_name(int layer, EncoderPart part) {
  return fmt::format("encoder.layer.{}.{}", layer, kDinoParts.at(static_cast<std::size_t>(part)));
}

/// Without what training alone needs.
std::string dino_name(const std::string& name) {
  return name == "embeddings.mask_token" ? std::string() : name;
}

class Dinov2 final : public PictureTower {
 public:
  Dinov2(const PictureTowerConfig& config, PictureSize size, const HfComponent& folder,
         DType compute, Device device)
      : PictureTower(config, folder, dino_name, dino_layer_name, compute, device), size_(size) {
    const std::int64_t d = config.stack.width, own = std::int64_t{config.side()} * config.side();
    std::vector<TensorTarget> targets = EncoderStack::tensors(config.stack, dino_layer_name);
    targets.push_back({"embeddings.cls_token", {1, 1, d}, {}});
    targets.push_back({"embeddings.position_embeddings", {1, own + 1, d}, {}});
    targets.push_back(
        {"embeddings.patch_embeddings.projection.weight", {d, 3, config.patch, config.patch}, {}});
    targets.push_back({"embeddings.patch_embeddings.projection.bias", {d}, {}});
    targets.push_back({"layernorm.weight", {d}, {}});
    targets.push_back({"layernorm.bias", {d}, {}});
    check_tensors(selected_, targets);
    places_ = make_places();
  }

  int dim() const override { return config_.stack.width; }
  std::int64_t tokens() const override { return std::int64_t{down()} * across() + 1; }

 protected:
  Tensor begin(ops::Tape& tape, const Tensor& pixels) const override {
    const PatchEmbedding embedding{"embeddings.patch_embeddings.projection", config_.patch,
                                   weights_.floats("embeddings.cls_token"), places_};
    return embed_pictures(tape, pixels, embedding, weights_);
  }
  Tensor end(ops::Tape& tape, const Tensor& x) const override {
    return weights_.norm(tape, first_tokens(x, tokens()), "layernorm", config_.stack.epsilon);
  }

 private:
  int down() const { return size_.height / config_.patch; }
  int across() const { return size_.width / config_.patch; }

  /// [T, D] on the device: that of the class token first, which has no place in the grid.
  Tensor make_places() const {
    const std::int64_t d = config_.stack.width;
    const Tensor stored = read_floats(*selected_.find("embeddings.position_embeddings"))
                              .reshape({std::int64_t{config_.side()} * config_.side() + 1, d});
    const Tensor places({tokens(), d});
    copy(stored.rows(0, 1), places.rows(0, 1));
    copy(resample_places(stored.rows(1, stored.size(0)), config_.side(), down(), across()),
         places.rows(1, tokens()));
    return places.to(weights_.device);
  }

  const PictureSize size_;
  Tensor places_;
};

}  // namespace

std::unique_ptr<PictureTower> make_dinov2(const HfComponent& folder, PictureSize size,
                                          DType compute, Device device) {
  const std::string what = fmt::format("'{}'", folder.config_path());
  const Json& json = folder.config();
  PictureTowerConfig fallback;
  fallback.stack = {.width = 768, .heads = 12, .layers = 12, .epsilon = 1e-6f, .layer_scale = true};
  fallback.image_size = 224;
  fallback.patch = 14;
  auto config = PictureTowerConfig::from_json(json, fallback, "gelu", what);
  as_usage([&] {
    if (get_bool(json, "use_swiglu_ffn").value_or(false))
      fail_usage("{}: a DINOv2 with \"use_swiglu_ffn\", as the giant one, is not supported", what);
    if (!get_bool(json, "qkv_bias").value_or(true))
      fail_usage("{}: a DINOv2 without \"qkv_bias\" is not supported", what);
    const int ratio = positive_field(json, "mlp_ratio", 4, what);
    if (ratio > 64) fail_usage("{}: \"mlp_ratio\" is {}", what, ratio);
    config.stack.feed_forward = config.stack.width * ratio;
  });
  config.stack.check(what);
  if (size.height < config.patch || size.width < config.patch)
    fail_usage("{}: pictures of {}x{} have no patches of {}x{}", what, size.width, size.height,
               config.patch, config.patch);
  return std::make_unique<Dinov2>(config, size, folder, compute, device);
}

}  // namespace vfm::models
