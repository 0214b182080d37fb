// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/codes.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
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

namespace {

/// A video that is being written.
class Written {
 public:
  Written(const models::CausalDecoder& decoder, const CodeJob& job)
      : job_(job),
        writer_(decoder, job.sample, text_of(decoder, job)),
        random_(job.seed, Purpose::sampler_noise, 0, job.key) {}

  std::int64_t total() const { return job_.sample.codes(); }
  void write_next() {
    const auto place = static_cast<std::size_t>(writer_.written());
    const std::vector<float> logits = writer_.logits();
    if (place < job_.given.size()) return writer_.write(job_.given[place]);
    // Before the last stage of a pipeline there are none.
    writer_.write_drawn(logits.empty() ? 0
                                       : draw_code(logits, job_.options, random_.uniform(place)));
  }
  std::vector<std::int32_t> codes() { return writer_.codes(); }

 private:
  static Tensor text_of(const models::CausalDecoder& decoder, const CodeJob& job) {
    if (static_cast<std::int64_t>(job.given.size()) > job.sample.codes())
      fail_usage("{} codes are given of {}", job.given.size(), job.sample.codes());
    if (job.given.empty() && !decoder.config().start_token)
      fail_usage("the model has nothing before the first code: it continues codes that are given");
    if (job.text.empty()) return {};
    return Tensor::from(job.text, {job.sample.text_tokens, decoder.config().text_embed_dim});
  }

  const CodeJob& job_;
  models::CodeWriter writer_;
  const Random random_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> write_codes(const models::CausalDecoder& decoder,
                                                   std::span<const CodeJob> videos,
                                                   const HowFarOf& how_far) {
  std::deque<Written> all;
  std::int64_t most = 0;
  for (const CodeJob& job : videos)
    most = std::max(most, all.emplace_back(decoder, job).total());
  for (std::int64_t i = 0; i < most; ++i)
    for (std::size_t video = 0; video < all.size(); ++video) {
      check_stop();
      if (i >= all[video].total()) continue;
      all[video].write_next();
      if (how_far) how_far(video, i + 1, all[video].total());
    }
  std::vector<std::vector<std::int32_t>> codes;
  for (Written& video : all)
    codes.push_back(video.codes());
  return codes;
}

}  // namespace vfm::generate
