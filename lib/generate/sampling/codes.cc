// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/codes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::generate {

std::int32_t draw_code(std::span<const float> logits, const CodeOptions& options, double u) {
  if (!std::ranges::all_of(logits, [](float v) { return std::isfinite(v); }))
    fail("the model makes values that are not finite: its weights are damaged");
  std::vector<std::int32_t> heap(logits.size());
  std::iota(heap.begin(), heap.end(), 0);
  const auto logit = [&](std::int32_t code) {
    return double{logits[static_cast<std::size_t>(code)]};
  };
  const auto less_likely = [&](std::int32_t a, std::int32_t b) {
    return logit(a) < logit(b) || (logit(a) == logit(b) && a > b);
  };
  const double largest = logit(*std::ranges::max_element(heap, less_likely));
  if (options.temperature == 0) return *std::ranges::max_element(heap, less_likely);
  const auto share = [&](std::int32_t code) {
    return std::exp((logit(code) - largest) / options.temperature);
  };
  double sum = 0;
  for (const std::int32_t code : heap)
    sum += share(code);
  // The likeliest first, as many as are kept: of tens of thousands few are.
  std::ranges::make_heap(heap, less_likely);
  std::vector<std::int32_t> kept;
  double of_kept = 0;
  while (!heap.empty() && (kept.empty() || of_kept < options.top_p * sum)) {
    std::ranges::pop_heap(heap, less_likely);
    kept.push_back(heap.back());
    heap.pop_back();
    of_kept += share(kept.back());
  }
  double below = 0;
  for (const std::int32_t code : kept)
    if ((below += share(code)) > u * of_kept) return code;
  return kept.back();
}

std::vector<std::int32_t> write_codes(const models::CausalDecoder& decoder,
                                      const models::CodeSample& sample, const Tensor& text,
                                      std::span<const std::int32_t> given,
                                      const CodeOptions& options, const Random& random,
                                      const HowFar& how_far) {
  if (static_cast<std::int64_t>(given.size()) > sample.codes())
    fail_usage("{} codes are given of {}", given.size(), sample.codes());
  if (given.empty() && !decoder.config().start_token)
    fail_usage("the model has nothing before the first code: it continues codes that are given");
  models::CodeWriter writer(decoder, sample, text);
  std::vector<std::int32_t> codes(given.begin(), given.end());
  for (std::int64_t i = 0; i < sample.codes(); ++i) {
    check_stop();
    const std::vector<float> logits = writer.logits();
    if (i >= static_cast<std::int64_t>(given.size()))
      codes.push_back(draw_code(logits, options, random.uniform(static_cast<std::uint64_t>(i))));
    writer.write(codes[static_cast<std::size_t>(i)]);
    if (how_far) how_far(i + 1, sample.codes());
  }
  return codes;
}

}  // namespace vfm::generate
