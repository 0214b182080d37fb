// SPDX-License-Identifier: Apache-2.0
#include "models/t5/t5.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/encoder_stack.h"
#include "models/folder/load_tensors.h"
#include "nn/mlp.h"
#include "ops/attention/attention.h"
#include "ops/matmul/linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

std::string layer_name(int layer, const char* part) {
  return fmt::format("encoder.block.{}.layer.{}.weight", layer, part);
}

const char* kNorms[] = {"0.layer_norm", "1.layer_norm"};
const char* kBias = "0.SelfAttention.relative_attention_bias";

/// Every tensor of the encoder.
std::vector<TensorTarget> targets_of(const T5Config& c) {
  const std::int64_t d = c.width, inner = std::int64_t{c.heads} * c.head_dim, f = c.feed_forward;
  std::vector<TensorTarget> targets{{"shared.weight", {c.vocabulary, d}, {}},
                                    {"encoder.final_layer_norm.weight", {d}, {}}};
  for (int i = 0; i < c.layers; ++i) {
    const auto add = [&](const char* part, Shape shape) {
      targets.push_back({layer_name(i, part), std::move(shape), {}});
    };
    add("0.SelfAttention.q", {inner, d});
    add("0.SelfAttention.k", {inner, d});
    add("0.SelfAttention.v", {inner, d});
    add("0.SelfAttention.o", {d, inner});
    if (i == 0 || c.bias_in_each_layer) add(kBias, {c.buckets, c.heads});
    for (const char* norm : kNorms)
      add(norm, {d});
    for (const char* in : {"1.DenseReluDense.wi_0", "1.DenseReluDense.wi_1"})
      if (c.gated) add(in, {f, d});
    if (!c.gated) add("1.DenseReluDense.wi", {f, d});
    add("1.DenseReluDense.wo", {d, f});
  }
  return targets;
}

}  // namespace

int t5_bucket(std::int64_t distance, int buckets, int max_distance) {
  const int half = buckets / 2, exact = half / 2;
  const int ahead = distance > 0 ? half : 0;
  distance = std::abs(distance);
  if (distance < exact) return ahead + static_cast<int>(distance);
  // In f32, as the reference computes it: the edges of the buckets are where they are by rounding.
  const float log_distance = std::log(static_cast<float>(distance) / static_cast<float>(exact));
  const auto log_range = static_cast<float>(std::log(static_cast<double>(max_distance) / exact));
  const float step = log_distance / log_range * static_cast<float>(half - exact);
  return ahead + std::min(half - 1, exact + static_cast<int>(step));
}

T5Config T5Config::from_json(const Json& config, std::string_view type, std::string_view what) {
  const auto positive = [&](const char* name) {
    const std::int64_t value = need_integer(config, name, what);
    if (value < 1 || value > (1 << 24)) fail_usage("{}: \"{}\" is {}", what, name, value);
    return static_cast<int>(value);
  };
  T5Config c;
  as_usage([&] {
    c.vocabulary = positive("vocab_size");
    c.width = positive("d_model");
    c.head_dim = positive("d_kv");
    c.feed_forward = positive("d_ff");
    c.layers = positive("num_layers");
    c.heads = positive("num_heads");
    c.buckets = positive("relative_attention_num_buckets");
    c.max_distance = positive("relative_attention_max_distance");
    c.epsilon = static_cast<float>(need_number(config, "layer_norm_epsilon", what));
    const std::string kind = need_string(config, "feed_forward_proj", what);
    if (kind != "relu" && kind != "gated-gelu")
      fail_usage("{}: feed_forward_proj '{}' is not supported: relu and gated-gelu are", what,
                 kind);
    c.gated = kind == "gated-gelu";
  });
  // Four buckets: one exact and one logarithmic, either way. More layers than any model has, or
  // products beyond 2^31, would only overflow what is counted with them.
  if (c.buckets < 4 || c.max_distance <= c.buckets / 4 || !(c.epsilon > 0) || c.layers > 1024 ||
      std::int64_t{c.heads} * c.head_dim > (1 << 24))
    fail_usage("{}: {} layers, {} heads of {}, {} buckets up to a distance of {} do not make a T5",
               what, c.layers, c.heads, c.head_dim, c.buckets, c.max_distance);
  c.bias_in_each_layer = type == "umt5";
  return c;
}

std::int64_t T5Config::parameters() const {
  std::int64_t sum = 0;
  for (const TensorTarget& target : targets_of(*this))
    sum += element_count(target.shape);
  return sum;
}

void check_t5(const T5Config& config, const io::TensorSet& weights) {
  check_tensors(weights, targets_of(config));
}

/// What goes through the layers.
struct T5::Pack {
  ops::Tape tape{false};
  ops::AttentionPack attention;
  Tensor x;     // [S, D] f32
  Tensor bias;  // [H, 2 R - 1] of the current layer
  std::int64_t longest = 0;
};

T5::T5(const T5Config& config, const io::TensorSet& weights, DType compute, Device device)
    : config_(config), weights_(weights), compute_(compute), device_(device) {
  check_t5(config, weights);
}

Tensor T5::weight(const std::string& name, DType dtype) const {
  return use_weight(*weights_.find(name), dtype, device_);
}

/// The rows of `ids` alone are read: the embedding of umT5 is as large as a third of the model.
Tensor T5::embed(std::span<const std::int32_t> ids) const {
  return table_rows(*weights_.find("shared.weight"), ids, device_, weights_.path());
}

Tensor T5::bias(int layer, std::int64_t longest) const {
  const std::int64_t width = 2 * longest - 1;
  if (device_ == Device::meta) return Tensor({config_.heads, width}, DType::f32, device_);
  const Tensor table = read_floats(*weights_.find(layer_name(layer, kBias)));  // [buckets, H]
  Tensor bias({config_.heads, width});
  const std::span<float> to = bias.floats();
  for (std::int64_t at = 0; at < width; ++at) {
    const std::int64_t distance = longest - 1 - at;  // key - query
    const int bucket = t5_bucket(distance, config_.buckets, config_.max_distance);
    for (int head = 0; head < config_.heads; ++head)
      to[static_cast<std::size_t>(head * width + at)] =
          table.floats()[static_cast<std::size_t>(bucket * config_.heads + head)];
  }
  return bias.to(device_);
}

void T5::attend(Pack& pack, int layer) const {
  const auto named = [&](const char* part) { return weight(layer_name(layer, part), compute_); };
  if (layer == 0 || config_.bias_in_each_layer) pack.bias = bias(layer, pack.longest);
  const Tensor norm = weight(layer_name(layer, kNorms[0]), DType::f32);
  const Tensor n = ops::rmsnorm(pack.tape, pack.x, norm, config_.epsilon).to(compute_);
  const Tensor q = ops::linear(pack.tape, n, named("0.SelfAttention.q"));
  const Tensor k = ops::linear(pack.tape, n, named("0.SelfAttention.k"));
  const Tensor v = ops::linear(pack.tape, n, named("0.SelfAttention.v"));
  const Tensor a = ops::relative_attention(pack.tape, q, k, v, pack.bias, pack.attention);
  ops::add_in_place(pack.x, ops::linear(pack.tape, a, named("0.SelfAttention.o"), {}, DType::f32));
}

void T5::feed_forward(Pack& pack, int layer) const {
  const auto named = [&](const char* part) { return weight(layer_name(layer, part), compute_); };
  const Tensor norm = weight(layer_name(layer, kNorms[1]), DType::f32);
  const Tensor n = ops::rmsnorm(pack.tape, pack.x, norm, config_.epsilon).to(compute_);
  const Tensor in = named(config_.gated ? "1.DenseReluDense.wi_0" : "1.DenseReluDense.wi");
  const Tensor up = config_.gated ? named("1.DenseReluDense.wi_1") : Tensor();
  const Tensor out = named("1.DenseReluDense.wo");
  const auto feed = [&](const Tensor& rows) {
    const Tensor inner = ops::linear(pack.tape, rows, in);
    if (config_.gated)
      ops::gated_gelu_in_place(pack.tape, inner, ops::linear(pack.tape, rows, up));
    else
      ops::relu_in_place(pack.tape, inner);
    return ops::linear(pack.tape, inner, out, {}, DType::f32);
  };
  ops::add_in_place(pack.x, nn::feed_by_rows(n, config_.feed_forward, feed));
}

Tensor T5::encode(std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const {
  need_lengths(ids.size(), lengths, "T5");
  if (ids.empty()) return Tensor({0, config_.width});
  Pack pack;
  pack.attention.query_lengths.assign(lengths.begin(), lengths.end());
  pack.attention.key_lengths = pack.attention.query_lengths;
  pack.attention.heads = pack.attention.key_heads = config_.heads;
  pack.attention.head_dim = config_.head_dim;
  pack.longest = std::ranges::max(lengths);
  ops::prepare(pack.attention, device_);
  pack.x = embed(ids);
  for (int layer = 0; layer < config_.layers; ++layer) {
    check_stop();
    attend(pack, layer);
    feed_forward(pack, layer);
  }
  const Tensor norm = weight("encoder.final_layer_norm.weight", DType::f32);
  const Tensor last = ops::rmsnorm(pack.tape, pack.x, norm, config_.epsilon);
  return device_ == Device::meta ? last : last.to(Device::cpu);
}

PartCost t5_cost(const T5Config& config, std::int64_t tokens, DType stored, DType compute,
                 Device device) {
  const MetaAccount account(device);
  const HeaderSet headers(targets_of(config), stored);
  const T5 model(config, headers, compute, Device::meta);
  model.encode(std::vector<std::int32_t>(static_cast<std::size_t>(tokens)), {{tokens}});
  PartCost cost;
  cost.parameters = config.parameters();
  cost.take(account, 0);
  return cost;
}

}  // namespace vfm::models
