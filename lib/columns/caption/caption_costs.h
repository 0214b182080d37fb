// Costs of a captioning model, for a dry run: memory in bytes, and floating-point operations
// (FLOPs) a clip. The costs are counted from questions and answers (models/vlm/answer_cost.h).
// Thread-safety: any thread.
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
  /// Adds questions about the same frames, with their answers. Questions without an answer are
  /// ignored.
  void add(const models::CaptionModel& model, std::span<const models::Question> questions,
           std::span<const models::Answer> answers);
  /// Adds a clip, after all questions about the clip.
  void add_clip();
  /// Adds `bytes`, which may be negative, to the bytes of frames in memory.
  void hold_frames(std::int64_t bytes);

  /// Returns an object, or null if no clip was counted. "clips" is the number of clips. "together"
  /// is the number of questions answered at the same time. "weights", "own_weights", "keys_values",
  /// "working", "frames", "program" and the total "memory" are the bytes that the largest question
  /// needs. "prompt_tokens", "text_tokens" and the members of "flops" ("vision", "prompt", "text")
  /// are means over clips. "program" is the measured memory of the process without tensors and
  /// frames. On a GPU the object has "device": "cuda", and "memory" is the total on the GPU,
  /// without "frames" and "program".
  Json to_json() const;
  /// Returns the costs as lines of text.
  std::string words() const;

 private:
  void measure_program();

  mutable std::mutex mutex_;  // guards all members below
  models::WeightCost weights_;
  models::AnswerCost sum_;  // sums, and the maxima of bytes
  std::size_t frames_ = 0;  // largest number of bytes of a window
  std::int64_t held_ = 0;   // bytes of frames in memory
  double program_ = 0;      // bytes
  double tokens_ = 0;
  bool gpu_ = false;
  // Whether questions share a prompt. If so, the prompt's keys and values are kept twice.
  bool further_ = false;
  std::int64_t clips_ = 0;
};

}  // namespace vfm::columns
