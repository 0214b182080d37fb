// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/siglip_vision.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/vision_folder.h"
#include "ops/attention/attention.h"
#include "ops/matmul/linear.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/text_activations.h"

namespace vfm::models {
namespace {

std::vector<TensorTarget> siglip_targets(const PictureTowerConfig& c) {
  const std::int64_t d = c.stack.width, f = c.stack.feed_forward;
  std::vector<TensorTarget> targets = EncoderStack::tensors(c.stack, vision_layer_name);
  const auto add = [&](const std::string& name, Shape shape) {
    targets.push_back({name, std::move(shape), {}});
  };
  add("embeddings.patch_embedding.weight", {d, 3, c.patch, c.patch});
  add("embeddings.patch_embedding.bias", {d});
  add("embeddings.position_embedding.weight", {std::int64_t{c.side()} * c.side(), d});
  for (const std::string norm : {"post_layernorm", "head.layernorm"}) {
    add(norm + ".weight", {d});
    add(norm + ".bias", {d});
  }
  add("head.probe", {1, 1, d});
  add("head.attention.in_proj_weight", {3 * d, d});
  add("head.attention.in_proj_bias", {3 * d});
  add("head.attention.out_proj.weight", {d, d});
  add("head.attention.out_proj.bias", {d});
  add("head.mlp.fc1.weight", {f, d});
  add("head.mlp.fc1.bias", {f});
  add("head.mlp.fc2.weight", {d, f});
  add("head.mlp.fc2.bias", {d});
  return targets;
}

class SiglipVision final : public PictureTower {
 public:
  SiglipVision(const PictureTowerConfig& config, const HfComponent& folder, DType compute,
               Device device)
      : PictureTower(config, folder, vision_names(folder), vision_layer_name, compute, device) {
    check_tensors(selected_, siglip_targets(config));
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
    const Tensor normed = weights_.norm(tape, x, "post_layernorm", config_.stack.epsilon);
    const Tensor h = attend_with_probe(tape, normed);
    const Tensor n = weights_.norm(tape, h, "head.layernorm", config_.stack.epsilon);
    const Tensor inner = weights_.linear(tape, n, "head.mlp.fc1");
    ops::gelu_in_place(tape, inner, config_.stack.activation);
    ops::add_in_place(h, weights_.linear(tape, inner, "head.mlp.fc2"));
    return h;
  }

 private:
  /// x [N T, D] to [N, D]: a query, the same for each picture, over its tokens.
  Tensor attend_with_probe(ops::Tape& tape, const Tensor& x) const {
    const std::int64_t d = dim(), pictures = x.size(0) / tokens();
    const Tensor matrix = use_weight(*selected_.find("head.attention.in_proj_weight"),
                                     weights_.compute, weights_.device);
    const Tensor bias = weights_.floats("head.attention.in_proj_bias");
    const Tensor probe = weights_.floats("head.probe").reshape({1, d}).to(weights_.compute);
    const Tensor query =
        ops::linear(tape, probe, matrix.rows(0, d), bias.rows(0, d), probe.dtype());
    const Tensor queries({pictures, d}, query.dtype(), query.device());
    for (std::int64_t n = 0; n < pictures; ++n)
      copy(query, queries.rows(n, n + 1));
    const Tensor keys_values = ops::linear(tape, x.to(weights_.compute), matrix.rows(d, 3 * d),
                                           bias.rows(d, 3 * d), weights_.compute);
    ops::AttentionPack pack;
    pack.query_lengths.assign(static_cast<std::size_t>(pictures), 1);
    pack.key_lengths.assign(static_cast<std::size_t>(pictures), tokens());
    pack.heads = pack.key_heads = config_.stack.heads;
    pack.head_dim = config_.stack.width / config_.stack.heads;
    ops::prepare(pack, weights_.device);
    const Tensor a = ops::cross_attention(tape, queries, keys_values, pack);
    return weights_.linear(tape, a.to(DType::f32), "head.attention.out_proj");
  }
};

}  // namespace

std::unique_ptr<PictureTower> make_siglip_vision(const HfComponent& folder, PictureSize size,
                                                 DType compute, Device device) {
  const std::string what = fmt::format("'{}'", folder.config_path());
  const Json& vision = vision_config(folder);
  PictureTowerConfig fallback;
  fallback.stack = {
      .width = 768, .heads = 12, .feed_forward = 3072, .layers = 12, .epsilon = 1e-6f};
  fallback.image_size = 224;
  fallback.patch = 16;
  const auto config = PictureTowerConfig::from_json(vision, fallback, "gelu_pytorch_tanh", what);
  if (!as_usage([&] { return get_bool(vision, "vision_use_head").value_or(true); }))
    fail_usage("{}: a SigLIP without its head (\"vision_use_head\") gives no vector of a picture",
               what);
  config.stack.check(what);
  config.need_size(size, what);
  return std::make_unique<SiglipVision>(config, folder, compute, device);
}

}  // namespace vfm::models
