// Qwen2.5-VL from a folder: what it sees and a prompt in, the tokens of an answer out; or Qwen2 and
// Qwen2.5, whose text it is, and which see nothing.
//
// A prompt is computed by itself, and tokens of several answers are written together with the bits
// that each has alone: what else a program does changes no bit of an answer.
// In f32 or bf16.
// Thread-safety: const members from any thread; a QwenAnswer, one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/encoder/encoder_folder.h"
#include "models/folder/hf_folder.h"
#include "models/vlm/qwen_config.h"
#include "models/vlm/qwen_places.h"
#include "models/vlm/qwen_text.h"
#include "models/vlm/qwen_vision.h"
#include "models/vlm/qwen_weights.h"
#include "models/vlm/vision_language.h"

namespace vfm::models {

class Qwen final : public VisionLanguageModel {
 public:
  /// `folder`, of the type kQwenType or kQwenTextType, must outlive it. Throws Error{usage} for a
  /// configuration that is not supported; Error listing the tensors that do not fit. `int8`:
  /// matrices are rounded to 8 bits.
  /// On Device::meta only headers of its weights are read, and work is counted.
  Qwen(const HfComponent& folder, DType compute, bool int8 = false, Device device = Device::cpu);

  const QwenConfig& config() const { return config_; }
  const QwenText& text() const override { return text_; }
  /// Throws Error, too, of a model that sees nothing.
  Tensor look(const QwenPicture& picture) const override;
  bool stands_for_sight(std::int32_t token) const override {
    return token == config_.image_token || token == config_.video_token;
  }
  std::vector<QwenPlace> places(std::span<const std::int32_t> ids,
                                std::span<const QwenSight> sights) const override {
    return qwen_places(ids, sights, config_);
  }

 private:
  QwenConfig config_;
  SelectedSet selected_;
  QwenWeights weights_;
  std::optional<QwenVision> vision_;
  QwenText text_;
};

/// How many tokens of a prompt lie before the words behind all that is seen: what prompts about the
/// same have in common.
std::size_t qwen_head(std::span<const std::int32_t> ids, const VisionLanguageModel& model);

/// The answer of a model that sees to a prompt, token by token.
class QwenAnswer {
 public:
  /// `ids`: the prompt, in which each token of a picture has one that stands for it; `pictures`
  /// in that order; at most `most` tokens are written. Throws Error where they do not fit; Stopped.
  QwenAnswer(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
             std::span<const QwenPicture> pictures, std::int64_t most);

  /// Of pictures that were looked at: `seen` as the model's look() has them of `sights`.
  QwenAnswer(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
             std::span<const QwenSight> sights, std::span<const Tensor> seen, std::int64_t most);

  /// Behind what `head` has read, of which keys and values are copied, with room for `more` tokens.
  /// Something must be read before it is asked for logits.
  QwenAnswer(const QwenAnswer& head, std::int64_t more);
  /// Words that go on behind what is there, at once. Throws Error where they do not fit; Stopped.
  void read(std::span<const std::int32_t> ids);

  /// Bytes of its keys and values.
  std::size_t memory_bytes() const;
  /// Of the tokens from `begin` to before `end` of what was read last: [end - begin, V] f32. Before
  /// write_together().
  Tensor logits_of(std::int64_t begin, std::int64_t end) const;
  /// The next token of each of some answers of one model, at most ops::kFewRows. Throws Error where
  /// no more fit; Stopped. After an exception they are of no more use.
  static void write_together(std::span<QwenAnswer* const> answers,
                             std::span<const std::int32_t> tokens);
  /// Of the token after what is there of each of them, below each other: [N, V] f32.
  static Tensor logits_together(std::span<QwenAnswer* const> answers);

 private:
  const VisionLanguageModel& model_;
  QwenMemory memory_;
  Tensor hidden_;
  std::int32_t next_ = 0;
};

}  // namespace vfm::models
