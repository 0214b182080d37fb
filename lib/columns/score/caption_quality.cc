// SPDX-License-Identifier: Apache-2.0
#include "columns/score/caption_quality.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "curate/vectors/look.h"

namespace vfm::columns {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double combined(const CaptionScores& scores, double fit, double fit_least) {
  constexpr QualityWeights w = kQualityWeights;
  const CaptionGain& gain = *scores.gain;
  const double z = w.bias + w.gain * (gain.with - gain.without) +
                   w.gain_least * std::max(gain.least, -w.floor) + w.fit * fit +
                   w.fit_least * fit_least;
  const double repeated = std::max(0.0, scores.text.repetition - 0.25) / 0.75;
  return (1 - repeated) * scores.text.clean / (1 + std::exp(-z));
}

}  // namespace

CaptionGain caption_gain(std::span<const double> with, std::span<const double> without) {
  if (with.empty() || with.size() != without.size())
    fail("{} tokens with a video and {} without are not those of one caption", with.size(),
         without.size());
  CaptionGain gain{mean_of(with), mean_of(without), with[0] - without[0], with.size()};
  for (std::size_t i = 1; i < with.size(); ++i)
    gain.least = std::min(gain.least, with[i] - without[i]);
  return gain;
}

std::vector<double> sentence_fits(const std::vector<std::vector<float>>& sentences,
                                  const std::vector<std::vector<float>>& frames) {
  std::vector<double> fits;
  if (frames.empty()) return fits;
  for (const std::vector<float>& sentence : sentences) {
    double most = -1;
    for (const std::vector<float>& frame : frames) {
      if (sentence.size() != frame.size() || sentence.empty())
        fail("its frames and sentences have no vectors that could be compared");
      const double cosine = curate::dot(sentence, frame);
      if (!std::isfinite(cosine)) fail("its vectors have values that are not finite");
      most = std::max(most, std::min(cosine, 1.0));
    }
    fits.push_back(most);
  }
  return fits;
}

Json CaptionScores::fields() const {
  Json fields = {{"caption_repetition", six_digits(text.repetition)},
                 {"caption_clean", six_digits(text.clean)},
                 {"caption_script", text.script},
                 {"caption_ended", text.ended}};
  if (gain) {
    fields["caption_tokens"] = gain->tokens;
    fields["caption_logprob"] = six_digits(gain->with);
    fields["caption_logprob_blind"] = six_digits(gain->without);
    fields["caption_gain"] = six_digits(gain->with - gain->without);
    fields["caption_gain_least"] = six_digits(gain->least);
  }
  if (!fits.empty()) {
    const double fit = mean_of(fits), least = *std::min_element(fits.begin(), fits.end());
    fields["caption_fit"] = six_digits(fit);
    fields["caption_fit_least"] = six_digits(least);
    for (const double one : fits)
      fields["caption_fits"].push_back(six_digits(one));
    if (gain) fields["caption_quality"] = six_digits(combined(*this, fit, least));
  }
  return fields;
}

}  // namespace vfm::columns
