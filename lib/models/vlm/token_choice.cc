// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/token_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace vfm::models {
namespace {

void penalise(std::span<float> logits, std::span<const std::int32_t> before, double penalty) {
  if (penalty == 1) return;
  std::vector<std::int32_t> tokens(before.begin(), before.end());
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  const auto factor = static_cast<float>(penalty);
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / factor : logit * factor;
  }
}

}  // namespace

std::int32_t choose_token(std::span<float> logits, std::span<const std::int32_t> before,
                          const TokenChoice& choice, double chance) {
  if (logits.empty() ||
      !std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }))
    fail("the model gives no numbers for the next token: its weights are damaged, or too large");
  penalise(logits, before, choice.repetition_penalty);
  const auto largest = std::ranges::max_element(logits);
  if (choice.temperature <= 0) return static_cast<std::int32_t>(largest - logits.begin());
  // The likeliest first, of equal ones the first: so a draw does not depend on the sort.
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(order,
                           [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  std::vector<double> weights;
  for (const std::int32_t token : order)
    weights.push_back(std::exp((double{logit(token)} - double{*largest}) / choice.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  std::size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < choice.top_p * total))
    kept += weights[count++];
  double left = chance * kept;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

}  // namespace vfm::models
