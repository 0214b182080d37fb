// Chooses the next token: the most likely, or one drawn from the most likely.
//
// Steps in the order of transformers' generate():
//   repetition penalty   if the token occurred before, also in the prompt: a positive logit is
//                        divided by the penalty, any other is multiplied
//   temperature          logits are divided by it; 0: the largest is taken, of equal ones the first
//   top-p                the most likely tokens whose probabilities sum to at least p stay
// Sources: Keskar et al., "CTRL" (2019); Holtzman et al., "The curious case of neural text
// degeneration" (2020).
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace vfm::models {

struct TokenChoice {
  double temperature = 0;  ///< 0: nothing is drawn
  double top_p = 1;        ///< above 0, to 1
  double repetition_penalty = 1;
};

/// Chooses from `logits`, which it changes. `before` are the tokens so far, and `chance` in (0, 1)
/// is the random number. Throws Error if a logit is not a number.
std::int32_t choose_token(std::span<float> logits, std::span<const std::int32_t> before,
                          const TokenChoice& choice, double chance);

}  // namespace vfm::models
