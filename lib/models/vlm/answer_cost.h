// What a model's answers cost, counted: a model on Device::meta, which has no memory, is asked as
// the one that answers is, by the same functions, and an account says what they would do
// (tensor/meta.h). FLOPs are those of products and attention; a multiply-add is two.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::models {

class VisionLanguageModel;
struct QwenPicture;

struct AnswerCost {
  double looked = 0, read = 0, written = 0;  ///< FLOPs of what is seen, of the prompt, of the text
  double head = 0;                           ///< those of `read` that are spent once, too
  std::int64_t prompt_tokens = 0;            ///< with those of what is seen
  std::size_t keys_values = 0;               ///< bytes, for as long as its text is written
  std::size_t working = 0;  ///< bytes beside, at most, while it is looked at and the prompt is read
};

/// Bytes of a model's weights.
struct WeightCost {
  std::size_t stored = 0;  ///< in its files, which are mapped
  std::size_t own = 0;     ///< what is converted, or goes to the GPU, when it is opened
};

/// Of a model on Device::meta, as it would be on the device `as`. `ids`: a prompt as QwenAnswer
/// takes it; `picture`: what is seen, of which the shape counts, null: nothing; `most`: tokens for
/// which there is room, of which `written`, at most that, are written.
AnswerCost answer_cost(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                       const QwenPicture* picture, std::int64_t most, std::int64_t written,
                       Device as = Device::cpu);

/// FLOPs of answer_log_probabilities() of `said` tokens behind the prompt `ids`.
double pass_flops(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                  const QwenPicture* picture, std::size_t said);

}  // namespace vfm::models
