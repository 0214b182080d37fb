// An answer that is written by itself, and what it is compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/tensor_set.h"
#include "models/vlm/qwen.h"
#include "models/vlm/token_choice.h"

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

/// Of the last `count` tokens of a prompt about pictures: [count, V] f32.
inline Tensor last_logits(const models::VisionLanguageModel& model,
                          std::span<const std::int32_t> ids,
                          std::span<const models::QwenPicture> pictures, std::int64_t count) {
  const models::QwenAnswer answer(model, ids, pictures, 0);
  const Tensor all = all_logits(answer, ids.size());
  return all.rows(all.size(0) - count, all.size(0)).clone();
}

/// The first `count` tokens that are written greedily.
inline std::vector<std::int32_t> greedy_tokens(models::QwenAnswer answer,
                                               std::vector<std::int32_t> ids, double penalty,
                                               std::size_t count) {
  std::vector<std::int32_t> tokens;
  const models::TokenChoice greedy{.repetition_penalty = penalty};
  while (tokens.size() < count) {
    const std::int32_t token = models::choose_token(next_logits(answer).floats(), ids, greedy, 0.5);
    tokens.push_back(token);
    ids.push_back(token);
    write_token(answer, token);
  }
  return tokens;
}

inline std::vector<std::int32_t> ids_of(const io::TensorSet& golden, const std::string& name) {
  const io::TensorView& view = *golden.find(name);
  REQUIRE(view.dtype == "I32");
  std::vector<std::int32_t> ids(view.data.size() / 4);
  std::memcpy(ids.data(), view.data.data(), view.data.size());
  return ids;
}

inline double farthest(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

}  // namespace vfm
