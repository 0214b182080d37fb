// Counts the cost of a model's answers. A model on Device::meta, which has no memory, runs the same
// functions as a real model, and an account counts the work (tensor/meta.h). FLOPs are those of
// products and attention; a multiply-add is two.
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
  double looked = 0, read = 0, written = 0;  ///< FLOPs of vision, of the prompt, of the answer
  double head = 0;                 ///< the part of `read` that questions about the same input share
  std::int64_t prompt_tokens = 0;  ///< including the tokens of pictures and videos
  std::size_t keys_values = 0;     ///< bytes of keys and values while the answer is written
  std::size_t working = 0;  ///< peak of other bytes during vision and the reading of the prompt
};

/// Bytes of a model's weights.
struct WeightCost {
  std::size_t stored = 0;  ///< bytes in its files, which are mapped
  std::size_t own = 0;     ///< bytes that are converted or copied to the GPU when it is opened
};

/// The cost for a model on Device::meta, as if it were on the device `as`. `ids` is a prompt as
/// QwenAnswer takes it. Only the shape of `picture` counts; null: no picture. There is room for
/// `most` tokens, and `written` tokens are written.
AnswerCost answer_cost(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                       const QwenPicture* picture, std::int64_t most, std::int64_t written,
                       Device as = Device::cpu);

/// FLOPs of answer_log_probabilities() for `said` tokens after the prompt `ids`.
double pass_flops(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                  const QwenPicture* picture, std::size_t said);

}  // namespace vfm::models
