// Qwen2.5-VL from a folder: pictures or a video and a prompt in, the tokens of an answer out. Also
// Qwen2 and Qwen2.5, which have the same text model and no vision.
//
// A prompt is computed by itself, and tokens of several answers are written together with the bits
// that each has alone. So other work of the program changes no bit of an answer. Computes in f32 or
// bf16.
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
  /// `folder`, of type kQwenType or kQwenTextType, must outlive this object. `int8`: matrices are
  /// rounded to 8 bits. On Device::meta only the headers of the weights are read, and work is
  /// counted. Throws Error{usage} for a configuration that is not supported; Error that lists the
  /// tensors that do not fit.
  Qwen(const HfComponent& folder, DType compute, bool int8 = false, Device device = Device::cpu);

  const QwenConfig& config() const { return config_; }
  const QwenText& text() const override { return text_; }
  /// Also throws Error for a model without vision.
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

/// The number of tokens of a prompt before the words after all pictures and videos. Prompts about
/// the same pictures have these tokens in common.
std::size_t qwen_head(std::span<const std::int32_t> ids, const VisionLanguageModel& model);

/// The answer of a VisionLanguageModel to a prompt, token by token.
class QwenAnswer {
 public:
  /// `ids` is the prompt, with one placeholder token for each token of a picture. `pictures` are in
  /// the order of their placeholders. At most `most` tokens are written. Throws Error if they do
  /// not fit; Stopped.
  QwenAnswer(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
             std::span<const QwenPicture> pictures, std::int64_t most);

  /// For pictures that the vision tower has seen: `seen` are the results of look() for `sights`.
  QwenAnswer(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
             std::span<const QwenSight> sights, std::span<const Tensor> seen, std::int64_t most);

  /// Continues after what `head` has read, by copying its keys and values, with room for `more`
  /// tokens. Call read() before asking for logits.
  QwenAnswer(const QwenAnswer& head, std::int64_t more);
  /// Reads more words after what is there, in one pass. Throws Error if they do not fit; Stopped.
  void read(std::span<const std::int32_t> ids);

  /// Bytes of the keys and values.
  std::size_t memory_bytes() const;
  /// Logits of the tokens [begin, end) of what was read last, [end - begin, V] f32. Call it before
  /// write_together().
  Tensor logits_of(std::int64_t begin, std::int64_t end) const;
  /// Appends one token to each of several answers of one model, at most ops::kFewRows. Throws Error
  /// if an answer has no more room; Stopped. After an exception the answers can no longer be used.
  static void write_together(std::span<QwenAnswer* const> answers,
                             std::span<const std::int32_t> tokens);
  /// Logits of the next token of each answer: [N, V] f32.
  static Tensor logits_together(std::span<QwenAnswer* const> answers);

 private:
  const VisionLanguageModel& model_;
  QwenMemory memory_;
  Tensor hidden_;
  std::int32_t next_ = 0;
};

}  // namespace vfm::models
