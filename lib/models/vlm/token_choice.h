// Which token comes next: the most likely, or one drawn from the likeliest.
//
// In this order, as transformers' generate() has it:
//   repetition penalty   the logit of a token that was there, in the prompt too, is divided by the
//                        penalty where it is positive, else multiplied
//   temperature          logits are divided by it; 0: the largest is taken, of equal ones the first
//   top-p                the likeliest tokens whose probabilities sum to at least p stay
// Sources: Keskar et al., "CTRL" (2019); Holtzman et al., "The curious case of neural text
// degeneration" (2020).
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace vfm::models {

struct TokenChoice {
  double temperature = 0;  ///< 0: no chance
  double top_p = 1;        ///< above 0, to 1
  double repetition_penalty = 1;
};

/// The token of `logits`, which are changed. `before`: the tokens so far. `chance` in (0, 1) draws.
/// Throws Error if a logit is not a number.
std::int32_t choose_token(std::span<float> logits, std::span<const std::int32_t> before,
                          const TokenChoice& choice, double chance);

}  // namespace vfm::models
