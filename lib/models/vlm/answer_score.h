// How likely a text is as a model's answer: the probability of each token after the tokens before
// it (teacher forcing), in one pass over the prompt and the text.
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

/// The log-probabilities, in nats, of the last `count` tokens of `ids`. At least one token must
/// come before them. `pictures` are as QwenAnswer takes them. Only a few rows of logits are in
/// memory at a time. Throws what QwenAnswer throws, and Error for logits that are not finite.
std::vector<double> answer_log_probabilities(const VisionLanguageModel& model,
                                             std::span<const std::int32_t> ids,
                                             std::span<const QwenPicture> pictures,
                                             std::size_t count);

/// ln softmax(logits)[token]. Throws Error for logits that are not finite, or a token out of range.
double log_probability(std::span<const float> logits, std::int32_t token);

}  // namespace vfm::models
