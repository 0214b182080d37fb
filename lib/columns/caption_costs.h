// What a dry run tells of a model that captions: memory, and floating-point operations of a clip.
// Counted (models/vlm/answer_cost.h) of the questions that were asked, with as many tokens as their
// answers have.
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
  /// Questions about the same frames, and their answers; those that have none are left out.
  void add(const models::CaptionModel& model, std::span<const models::Question> questions,
           std::span<const models::Answer> answers);
  /// A clip has been asked about to its end.
  void add_clip();
  /// So many bytes of frames more, or fewer, wait for the model.
  void hold_frames(std::int64_t bytes);

  /// {"clips", "weights", "own_weights", "together", "keys_values", "working", "frames", "program",
  /// "memory"} in bytes, of the largest question that was asked; "program" is measured: what this
  /// process has beside tensors and frames, and what their allocator keeps; "device": "cuda" where
  /// "memory" is a GPU's, and "frames" and "program" are not in it; and of a clip in the mean
  /// "prompt_tokens", "text_tokens" and "flops": {"vision", "prompt", "text"}. Null if no clip was.
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
