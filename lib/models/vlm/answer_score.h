// How likely a text is as an answer of a model that sees: each of its tokens after those before it
// (teacher forcing), in one pass over the prompt and the text.
//
//   p_i = log softmax(logits after tokens 0 .. i-1)[token i]
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/vlm/qwen.h"

namespace vfm::models {

/// Of the last `count` of `ids`, at least one fewer than there are, in nats. `pictures` as
/// QwenAnswer takes them. Few rows of logits are in memory at a time. Throws what QwenAnswer
/// throws, and Error for logits that are not finite.
std::vector<double> answer_log_probabilities(const VisionLanguageModel& model,
                                             std::span<const std::int32_t> ids,
                                             std::span<const QwenPicture> pictures,
                                             std::size_t count);

/// ln softmax(logits)[token]. Throws Error for logits that are not finite, or no such token.
double log_probability(std::span<const float> logits, std::int32_t token);

}  // namespace vfm::models
