// Costs of a captioning model, for a dry run: memory, and floating-point operations (FLOPs) a clip,
// counted from questions asked and tokens answered (models/vlm/answer_cost.h). Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "base/json_fwd.h"
#include "models/vlm/caption_model.h"

namespace vfm::columns {

class CaptionCosts {
 public:
  /// Adds questions about the same frames, with their answers; ignores questions without an answer.
  void add(const models::CaptionModel& model, std::span<const models::Question> questions,
           std::span<const models::Answer> answers);
  /// Call it when all questions about a clip are asked.
  void add_clip();
  /// Adds to the bytes of frames that wait for the model. The argument may be negative.
  void hold_frames(std::int64_t bytes);

  /// Returns the number of "clips"; bytes for the largest question: "weights", "own_weights",
  /// "together", "keys_values", "working", "frames", "program" and their total "memory"; means over
  /// clips: "prompt_tokens", "text_tokens", "flops": {"vision", "prompt", "text"}. "program" is
  /// measured: the process's memory without tensors, frames and their allocators' reserve. With
  /// "device": "cuda" the total is a GPU's, without "frames" and "program". The result is null if
  /// no clip was counted.
  Json to_json() const;
  /// Returns the same costs as lines of text.
  std::string words() const;

 private:
  void measure_program();

  mutable std::mutex mutex_;  // guards all
  models::WeightCost weights_;
  models::AnswerCost sum_;  // its bytes are the maximum, not the sum
  std::size_t frames_ = 0;  // bytes, the maximum of a window
  std::int64_t held_ = 0;   // bytes of frames, now
  double program_ = 0;      // bytes
  double tokens_ = 0;
  bool gpu_ = false;
  bool further_ = false;  // several questions: keys and values of their common part are kept twice
  std::int64_t clips_ = 0;
};

}  // namespace vfm::columns
