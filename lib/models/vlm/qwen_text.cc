// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_text.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/stop.h"
#include "ops/attention/newest_query.h"
#include "ops/matmul/few_rows.h"
#include "ops/pointwise/add.h"
#include "ops/position/turn_heads.h"

namespace vfm::models {
namespace {

constexpr const char* kQwenTable = "embed_tokens.weight";

struct PlaceAngles {
  Tensor cosines, sines;  // [N, K / 2]
};

PlaceAngles place_angles(std::span<const QwenPlace> places, const QwenTextConfig& c,
                         Device device) {
  const int pairs = c.head_dim() / 2;
  std::vector<std::pair<float, std::size_t>> turns;  // frequency, axis
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (int i = 0; i < c.sections[axis]; ++i) {
      const double power = 2.0 * static_cast<double>(turns.size()) / c.head_dim();
      const double plain = 1 / std::pow(c.theta, power);
      turns.emplace_back(static_cast<float>(c.stretched ? c.stretched->frequency(plain) : plain),
                         axis);
    }
  const auto count = static_cast<std::int64_t>(places.size());
  // Made on the CPU: they are few, and are its numbers on every device.
  const Device made = device == Device::meta ? device : Device::cpu;
  PlaceAngles angles{Tensor({count, pairs}, DType::f32, made),
                     Tensor({count, pairs}, DType::f32, made)};
  if (device == Device::meta) return angles;
  float* cosine = angles.cosines.data<float>();
  float* sine = angles.sines.data<float>();
  for (const QwenPlace& place : places)
    for (const auto& [frequency, axis] : turns) {
      const float angle = static_cast<float>(place[axis]) * frequency;
      *cosine++ = std::cos(angle);
      *sine++ = std::sin(angle);
    }
  return {angles.cosines.to(device), angles.sines.to(device)};
}

}  // namespace

QwenText::QwenText(const QwenTextConfig& config, const QwenMatrices& weights)
    : config_(config),
      compute_(weights.compute()),
      device_(weights.device()),
      weights_(weights),
      norm_(weights.vector("norm.weight")),
      head_(config.tied ? weights.linear("embed_tokens") : weights.linear("lm_head")) {
  if (device_ == Device::cuda && config_.head_dim() > ops::kNewestHead)
    fail_usage(
        "a head of {} numbers is too wide for the GPU; its kernels take {}: use --device cpu",
        config_.head_dim(), ops::kNewestHead);
  for (int i = 0; i < config_.layers; ++i) {
    const std::string name = vfm::format("layers.{}.", i);
    const std::string attention = name + "self_attn.";
    layers_.push_back({weights.vector(name + "input_layernorm.weight"),
                       weights.vector(name + "post_attention_layernorm.weight"),
                       weights.linear(attention + "q_proj"), weights.linear(attention + "k_proj"),
                       weights.linear(attention + "v_proj"), weights.linear(attention + "o_proj"),
                       QwenFeedForward::from(weights, name + "mlp.")});
  }
}

QwenMemory QwenText::memory(std::int64_t capacity) const {
  QwenMemory memory;
  for (int i = 0; i < config_.layers; ++i)
    memory.layers.emplace_back(
        Shape{capacity, std::int64_t{2} * config_.key_heads * config_.head_dim()}, compute_,
        device_);
  return memory;
}

Tensor QwenText::embed(std::span<const std::int32_t> ids) const {
  return weights_.rows(kQwenTable, ids);
}

QwenText::Heads QwenText::heads(const Layer& layer, const Tensor& normed, const Tensor& cosines,
                                const Tensor& sines) const {
  const Tensor q = layer.query(normed), k = layer.key(normed), v = layer.value(normed);
  ops::turn_heads(q, config_.heads, cosines, sines);
  ops::turn_heads(k, config_.key_heads, cosines, sines);
  return {q.to(compute_), beside(k, v).to(compute_)};
}

Tensor QwenText::attend(const Layer& layer, const Heads& heads, const Tensor& kv,
                        const ops::AttentionPack& pack) const {
  const std::int64_t count = pack.query_lengths[0], end = pack.key_lengths[0];
  copy(heads.kv, kv.rows(end - count, end));
  ops::Tape tape(false);
  const Tensor seen = ops::cross_attention(tape, heads.queries, kv.rows(0, end), pack);
  return layer.out(seen.to(DType::f32));
}

Tensor QwenText::attend_newest(const Layer& layer, const Heads& heads, std::size_t number,
                               std::span<QwenMemory* const> memories) const {
  std::vector<ops::SeenKeys> texts;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    const std::int64_t before = memories[i]->seen, row = static_cast<std::int64_t>(i);
    const Tensor& kv = memories[i]->layers[number];
    copy(heads.kv.rows(row, row + 1), kv.rows(before, before + 1));
    texts.push_back({kv, before + 1});
  }
  return layer.out(
      ops::newest_query(heads.queries.to(DType::f32), texts, config_.heads, config_.key_heads));
}

/// `attend` of a layer's number, the layer and its heads is what its attention gives.
template <class Attend>
Tensor QwenText::through_layers(const Tensor& x, std::span<const QwenPlace> places,
                                const Attend& attend) const {
  const PlaceAngles angles = place_angles(places, config_, device_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    check_stop();
    const Layer& layer = layers_[i];
    const Heads made =
        heads(layer, qwen_norm(x, layer.norm1, config_.epsilon), angles.cosines, angles.sines);
    ops::add_in_place(x, attend(i, layer, made));
    ops::add_in_place(x, layer.feed(qwen_norm(x, layer.norm2, config_.epsilon)));
  }
  return qwen_norm(x, norm_, config_.epsilon);
}

Tensor QwenText::forward(const Tensor& x, std::span<const QwenPlace> places,
                         QwenMemory& memory) const {
  const std::int64_t count = x.size(0), end = memory.seen + count;
  if (static_cast<std::int64_t>(places.size()) != count || memory.layers.size() != layers_.size() ||
      count < 1 || end > memory.layers.front().size(0))
    fail("{} tokens do not fit the memory of a text", count);
  ops::AttentionPack pack;
  pack.query_lengths = {count};
  pack.key_lengths = {end};
  pack.heads = config_.heads;
  pack.key_heads = config_.key_heads;
  pack.head_dim = config_.head_dim();
  pack.causal = true;
  ops::prepare(pack, device_);
  const Tensor y =
      through_layers(x, places, [&](std::size_t i, const Layer& layer, const Heads& made) {
        return attend(layer, made, memory.layers[i], pack);
      });
  memory.seen = end;
  return y;
}

Tensor QwenText::step(const Tensor& x, std::span<const QwenPlace> places,
                      std::span<QwenMemory* const> memories) const {
  const std::size_t count = memories.size();
  bool fits = count > 0 && static_cast<std::int64_t>(count) <= ops::kFewRows &&
              x.size(0) == static_cast<std::int64_t>(count) && places.size() == count;
  for (const QwenMemory* memory : memories)
    fits = fits && memory->layers.size() == layers_.size() &&
           memory->seen < memory->layers.front().size(0);
  if (!fits) fail("the next tokens of {} texts do not fit their memory", count);
  const Tensor y =
      through_layers(x, places, [&](std::size_t i, const Layer& layer, const Heads& made) {
        return attend_newest(layer, made, i, memories);
      });
  for (QwenMemory* const memory : memories)
    ++memory->seen;
  return y;
}

}  // namespace vfm::models
