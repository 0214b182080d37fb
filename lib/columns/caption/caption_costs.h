// The costs that a dry run reports for a captioning model: memory, and floating-point operations of
// a clip. They are counted (models/vlm/answer_cost.h) from the questions asked and the tokens of
// their answers.
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
  /// Adds questions about the same frames and their answers; leaves out questions without one.
  void add(const models::CaptionModel& model, std::span<const models::Question> questions,
           std::span<const models::Answer> answers);
  /// Counts a clip whose questions are all asked.
  void add_clip();
  /// Adds to the bytes of frames that wait for the model.
  void hold_frames(std::int64_t bytes);

  /// {"clips", "weights", "own_weights", "together", "keys_values", "working", "frames", "program",
  /// "memory"} in bytes, of the largest question; "program" is measured: this process's memory
  /// beside tensors and frames, and their allocator's reserve; "device": "cuda" where "memory" is a
  /// GPU's, without "frames" and "program"; and the means for a clip "prompt_tokens", "text_tokens"
  /// and "flops": {"vision", "prompt", "text"}. Null if no clip was counted.
  Json to_json() const;
  /// The same in words, lines.
  std::string words() const;

 private:
  void measure_program();

  mutable std::mutex mutex_;  // guards all
  models::WeightCost weights_;
  models::AnswerCost sum_;  // its bytes: the most of one
  std::size_t frames_ = 0;  // bytes, the most of a window
  std::int64_t held_ = 0;   // bytes of frames, now
  double program_ = 0;      // bytes
  double tokens_ = 0;
  bool gpu_ = false;
  bool further_ = false;  // what several questions have in common is kept once more
  std::int64_t clips_ = 0;
};

}  // namespace vfm::columns
