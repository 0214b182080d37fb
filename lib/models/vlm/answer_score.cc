// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/answer_score.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::models {
namespace {

/// Of logits that are in memory: of a vocabulary of 152,064 as many as 20 MB.
constexpr std::int64_t kScoredRows = 32;

}  // namespace

double log_probability(std::span<const float> logits, std::int32_t token) {
  if (token < 0 || static_cast<std::size_t>(token) >= logits.size())
    fail("token {} is not in a vocabulary of {}", token, logits.size());
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }))
    fail("the model gives no numbers for a token: its weights are damaged, or too large");
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(double{logit} - largest);
  return double{logits[static_cast<std::size_t>(token)]} - largest - std::log(sum);
}

std::vector<double> answer_log_probabilities(const VisionLanguageModel& model,
                                             std::span<const std::int32_t> ids,
                                             std::span<const QwenPicture> pictures,
                                             std::size_t count) {
  if (count >= ids.size()) fail("a text without a prompt cannot be scored");
  const QwenAnswer pass(model, ids, pictures, 0);
  const auto first = static_cast<std::int64_t>(ids.size() - count);
  const auto end = static_cast<std::int64_t>(ids.size());
  std::vector<double> found;
  for (std::int64_t begin = first; begin < end; begin += kScoredRows) {
    check_stop();
    const std::int64_t stop = std::min(end, begin + kScoredRows);
    const Tensor logits = pass.logits_of(begin - 1, stop - 1).to(Device::cpu);
    const std::span<const float> all = logits.floats();
    const std::size_t width = all.size() / static_cast<std::size_t>(stop - begin);
    for (std::int64_t i = begin; i < stop; ++i)
      found.push_back(
          log_probability(all.subspan(static_cast<std::size_t>(i - begin) * width, width),
                          ids[static_cast<std::size_t>(i)]));
  }
  return found;
}

}  // namespace vfm::models
