// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/siglip_head.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/encoder/vision_folder.h"
#include "ops/attention/attention.h"
#include "ops/matmul/linear.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

/// x [N T, D] to [N, D]: a query, the same for each picture, over its tokens.
Tensor attend_with_probe(ops::Tape& tape, const Tensor& x, std::int64_t tokens,
                         const PictureTowerConfig& config, const TowerWeights& weights) {
  const std::int64_t d = config.stack.width, pictures = x.size(0) / tokens;
  const Tensor matrix = use_weight(*weights.set.find("head.attention.in_proj_weight"),
                                   weights.compute, weights.device);
  const Tensor bias = weights.floats("head.attention.in_proj_bias");
  const Tensor probe = weights.floats("head.probe").reshape({1, d}).to(weights.compute);
  const Tensor query = ops::linear(tape, probe, matrix.rows(0, d), bias.rows(0, d), probe.dtype());
  const Tensor queries({pictures, d}, query.dtype(), query.device());
  for (std::int64_t n = 0; n < pictures; ++n)
    copy(query, queries.rows(n, n + 1));
  const Tensor keys_values = ops::linear(tape, x.to(weights.compute), matrix.rows(d, 3 * d),
                                         bias.rows(d, 3 * d), weights.compute);
  ops::AttentionPack pack;
  pack.query_lengths.assign(static_cast<std::size_t>(pictures), 1);
  pack.key_lengths.assign(static_cast<std::size_t>(pictures), tokens);
  pack.heads = pack.key_heads = config.stack.heads;
  pack.head_dim = config.stack.width / config.stack.heads;
  ops::prepare(pack, weights.device);
  const Tensor a = ops::cross_attention(tape, queries, keys_values, pack);
  return weights.linear(tape, a.to(DType::f32), "head.attention.out_proj");
}

}  // namespace

PictureTowerConfig siglip_config(const HfComponent& folder, int image_size) {
  const std::string what = fmt::format("'{}'", folder.config_path());
  const Json& vision = vision_config(folder);
  PictureTowerConfig fallback;
  fallback.stack = {
      .width = 768, .heads = 12, .feed_forward = 3072, .layers = 12, .epsilon = 1e-6f};
  fallback.image_size = image_size;
  fallback.patch = 16;
  const auto config = PictureTowerConfig::from_json(vision, fallback, "gelu_pytorch_tanh", what);
  if (!as_usage([&] { return get_bool(vision, "vision_use_head").value_or(true); }))
    fail_usage("{}: a SigLIP without its head (\"vision_use_head\") gives no vector of a picture",
               what);
  config.stack.check(what);
  return config;
}

std::vector<TensorTarget> siglip_targets(const PictureTowerConfig& c) {
  const std::int64_t d = c.stack.width, f = c.stack.feed_forward;
  std::vector<TensorTarget> targets = EncoderStack::tensors(c.stack, vision_layer_name);
  const auto add = [&](const std::string& name, Shape shape) {
    targets.push_back({name, std::move(shape), {}});
  };
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

Tensor siglip_head(ops::Tape& tape, const Tensor& x, std::int64_t tokens,
                   const PictureTowerConfig& config, const TowerWeights& weights) {
  const Tensor normed = weights.norm(tape, x, "post_layernorm", config.stack.epsilon);
  const Tensor h = attend_with_probe(tape, normed, tokens, config, weights);
  const Tensor n = weights.norm(tape, h, "head.layernorm", config.stack.epsilon);
  const Tensor inner = weights.linear(tape, n, "head.mlp.fc1");
  ops::activate_in_place(tape, inner, config.stack.activation);
  ops::add_in_place(h, weights.linear(tape, inner, "head.mlp.fc2"));
  return h;
}

}  // namespace vfm::models
