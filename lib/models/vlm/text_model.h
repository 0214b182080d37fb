// A language model that does something with a text: an instruction and the text in, another text
// out. From a folder as Hugging Face has them: Qwen2's or Qwen2.5's config.json, weights,
// tokenizer.json and chat template beside each other. Its layers are those of CaptionModel's models
// (models/vlm/qwen_text.h), and texts that are asked for at the same time are written together as
// there, with the same bits. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/vlm/caption_model.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The same model in another place, which computes what a TextModel is asked, with the same
/// results (workers/rewriting.h). As TextModel's member of that name; any thread.
class RewritingElsewhere {
 public:
  virtual ~RewritingElsewhere() = default;
  virtual Answer answer(std::string_view instruction, std::string_view text, const AnswerRule& rule,
                        std::string_view key) const = 0;
};

class TextModel {
 public:
  /// `compute`: f32 or bf16; `int8`: matrices are rounded to 8 bits; `device`: cpu or cuda;
  /// `elsewhere`: what computes there instead, with weights that are then not opened here. Throws
  /// Error{usage} for a folder that is not there, or holds what is not supported; GpuError.
  TextModel(const std::string& folder, DType compute, bool int8 = false,
            Device device = Device::cpu,
            std::unique_ptr<const RewritingElsewhere> elsewhere = nullptr);
  ~TextModel();

  /// Throws Error{usage} if an instruction has no place in the model's chat.
  void check_instruction(std::string_view instruction) const;
  /// The instruction is what the chat's system says, the text what its user says. `key` names the
  /// question where the rule draws. Throws Error for a text with marks of the chat in it, or with
  /// more tokens than the model takes; Stopped.
  Answer answer(std::string_view instruction, std::string_view text, const AnswerRule& rule,
                std::string_view key) const;
  /// What it is, to be stored with its texts: {"name": "qwen2", "path": …, "hash": …, "words": …,
  /// "compute": "f32"}, "device": "cuda" on a GPU, and "weights": "int8" where they are. Two with
  /// the same, but for "path", write the same.
  Json config() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace vfm::models
