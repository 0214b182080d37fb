// An answer that is written by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "models/vlm/qwen.h"

namespace vfm {

/// Of the token after what is there: [1, V] f32.
inline Tensor next_logits(models::QwenAnswer& answer) {
  models::QwenAnswer* const one[] = {&answer};
  return models::QwenAnswer::logits_together(one);
}

inline void write_token(models::QwenAnswer& answer, std::int32_t token) {
  models::QwenAnswer* const one[] = {&answer};
  models::QwenAnswer::write_together(one, std::span(&token, 1));
}

/// Of each token of a prompt of `count`: [count, V] f32.
inline Tensor all_logits(const models::QwenAnswer& answer, std::size_t count) {
  return answer.logits_of(0, static_cast<std::int64_t>(count));
}

}  // namespace vfm
