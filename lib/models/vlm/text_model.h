// A language model that changes a text: an instruction and the text in, another text out. It is
// read from a Hugging Face folder of Qwen2 or Qwen2.5, with config.json, weights, tokenizer.json
// and chat template. Its layers are those of CaptionModel's models (models/vlm/qwen_text.h). Texts
// that are requested at the same time are written together, with the same bits. Thread-safety:
// const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/vlm/caption_model.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The same model in another place, such as another process. It answers in place of a TextModel,
/// with the same results (workers/rewriting.h). answer() does what TextModel::answer() does.
/// Thread-safety: any thread.
class RewritingElsewhere {
 public:
  virtual ~RewritingElsewhere() = default;
  virtual Answer answer(std::string_view instruction, std::string_view text, const AnswerRule& rule,
                        std::string_view key) const = 0;
};

class TextModel {
 public:
  /// `compute` is f32 or bf16. With `int8` matrices are rounded to 8 bits. The device is cpu or
  /// cuda. If `elsewhere` is not null, it computes instead, and no weights are opened here. Throws
  /// Error{usage} for a folder that does not exist or is not supported; GpuError.
  TextModel(const std::string& folder, DType compute, bool int8 = false,
            Device device = Device::cpu,
            std::unique_ptr<const RewritingElsewhere> elsewhere = nullptr);
  ~TextModel();

  /// Throws Error{usage} for an instruction that the model's chat does not allow.
  void check_instruction(std::string_view instruction) const;
  /// The instruction is the system message of the chat, the text its user message. `key` names the
  /// question for random choices. Throws Error for a text that contains marks of the chat, or has
  /// more tokens than the model takes; Stopped.
  Answer answer(std::string_view instruction, std::string_view text, const AnswerRule& rule,
                std::string_view key) const;
  /// Description of the model, stored with its texts: {"name": "qwen2", "path": …, "hash": …,
  /// "words": …, "compute": "f32"}, perhaps with "device": "cuda" and "weights": "int8". Models
  /// whose descriptions are equal, except for "path", write the same texts.
  Json config() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vfm::models
