// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_text.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/stop.h"
#include "models/encoder/encoder_folder.h"
#include "ops/attention/attention.h"
#include "ops/attention/newest_query.h"
#include "ops/matmul/few_rows.h"
#include "ops/pointwise/add.h"

namespace vfm::models {
namespace {

constexpr const char* kQwenTable = "embed_tokens.weight";

/// Times from here on are refused: single precision does not tell all of them apart.
constexpr float kQwenLastTime = 1 << 24;

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
  PlaceAngles angles{Tensor({count, pairs}, DType::f32, device),
                     Tensor({count, pairs}, DType::f32, device)};
  if (device == Device::meta) return angles;
  float* cosine = angles.cosines.data<float>();
  float* sine = angles.sines.data<float>();
  for (const QwenPlace& place : places)
    for (const auto& [frequency, axis] : turns) {
      const float angle = static_cast<float>(place[axis]) * frequency;
      *cosine++ = std::cos(angle);
      *sine++ = std::sin(angle);
    }
  return angles;
}

/// Appends those of a picture, from the number `first` on. Throws Error for a video that takes too
/// long, as a container may say that it does.
void add_places(const QwenSight& sight, std::int32_t first, const QwenVisionConfig& c,
                std::vector<QwenPlace>& places) {
  // As transformers: in single precision.
  const float interval =
      sight.still ? 1.0f
                  : static_cast<float>(c.tokens_per_second) * static_cast<float>(sight.seconds);
  if (!(interval * static_cast<float>(sight.grid.frames) < kQwenLastTime))
    fail("{} pairs of frames that are {} seconds apart are a longer video than the model can count",
         sight.grid.frames, sight.seconds);
  for (int frame = 0; frame < sight.grid.frames; ++frame) {
    const auto time = static_cast<std::int32_t>(static_cast<float>(frame) * interval);
    for (int row = 0; row < sight.grid.rows / c.merge; ++row)
      for (int column = 0; column < sight.grid.columns / c.merge; ++column)
        places.push_back({first + time, first + row, first + column});
  }
}

}  // namespace

std::vector<QwenPlace> qwen_places(std::span<const std::int32_t> ids,
                                   std::span<const QwenSight> sights, const QwenConfig& config) {
  std::vector<QwenPlace> places;
  std::int32_t next = 0;
  std::size_t sight = 0;
  for (std::size_t i = 0; i < ids.size();) {
    if (ids[i] != config.image_token && ids[i] != config.video_token) {
      places.push_back({next, next, next});
      ++next, ++i;
      continue;
    }
    if (sight == sights.size()) fail("a prompt has tokens of more pictures than there are");
    const QwenSight& seen = sights[sight++];
    const auto count = static_cast<std::size_t>(seen.grid.tokens(config.vision.merge));
    const std::int32_t token = seen.still ? config.image_token : config.video_token;
    const std::size_t end = std::min(ids.size(), i + count);
    if (end - i != count || std::any_of(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                        ids.begin() + static_cast<std::ptrdiff_t>(end),
                                        [&](std::int32_t id) { return id != token; }))
      fail("a prompt does not have the {} tokens of what is seen", count);
    add_places(seen, next, config.vision, places);
    for (; i < end; ++i)
      next = std::max(next, *std::ranges::max_element(places[i]) + 1);
  }
  if (sight != sights.size()) fail("a prompt has no place for what is seen");
  return places;
}

QwenText::QwenText(const QwenTextConfig& config, const io::TensorSet& set,
                   const QwenWeights& weights)
    : config_(config),
      compute_(weights.compute()),
      device_(weights.device()),
      set_(set),
      norm_(weights.vector("norm.weight")),
      head_(config.tied ? weights.linear("embed_tokens") : weights.linear("lm_head")) {
  for (int i = 0; i < config_.layers; ++i) {
    const std::string name = fmt::format("layers.{}.", i);
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
  return table_rows(*set_.find(kQwenTable), ids, device_, set_.path());
}

QwenText::Heads QwenText::heads(const Layer& layer, const Tensor& normed, const Tensor& cosines,
                                const Tensor& sines) const {
  const Tensor q = layer.query(normed), k = layer.key(normed), v = layer.value(normed);
  turn_heads(q, config_.heads, cosines, sines);
  turn_heads(k, config_.key_heads, cosines, sines);
  return {q.to(compute_), beside(k, v).to(compute_)};
}

Tensor QwenText::attend(const Layer& layer, const Heads& heads, const Tensor& kv,
                        std::int64_t before) const {
  const std::int64_t count = heads.kv.size(0);
  copy(heads.kv, kv.rows(before, before + count));
  ops::AttentionPack pack;
  pack.query_lengths = {count};
  pack.key_lengths = {before + count};
  pack.heads = config_.heads;
  pack.key_heads = config_.key_heads;
  pack.head_dim = config_.head_dim();
  pack.causal = true;
  ops::Tape tape(false);
  const Tensor seen = ops::cross_attention(tape, heads.queries, kv.rows(0, before + count), pack);
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
  const Tensor y =
      through_layers(x, places, [&](std::size_t i, const Layer& layer, const Heads& made) {
        return attend(layer, made, memory.layers[i], memory.seen);
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
