// Measures of a caption's quality, and a score that combines the measures. The measures are fields
// of KEY.json in a score column (columns/score/score.h). Logarithms are natural. `before` are the
// tokens before token t.
//
//   caption_repetition, caption_clean, caption_script, caption_ended   text/text_checks.h
//   caption_logprob           mean over the caption's tokens t of ln p(t | video, prompt, before)
//   caption_logprob_blind     mean of ln p(t | prompt, before)
//   caption_gain              caption_logprob - caption_logprob_blind, in nats a token
//   caption_gain_least        minimum over the caption's tokens t of
//                             ln p(t | video, prompt, before) - ln p(t | prompt, before)
//   caption_fits              for each sentence, the largest of its cosines with the frames
//   caption_fit, caption_fit_least   mean and smallest of caption_fits
//   caption_quality           s(z) (1 - max(0, caption_repetition - 1/4) / (3/4)) caption_clean,
//                             s(z) = 1 / (1 + exp(-z)),
//     z = bias + gain caption_gain + gain_least max(caption_gain_least, -floor)
//         + fit caption_fit + fit_least caption_fit_least
// The numbers bias, gain, gain_least, floor, fit and fit_least are in QualityWeights.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/json_fwd.h"
#include "text/text_checks.h"

namespace vfm::columns {

/// The weights in the formula of caption_quality. If a weight changes, `rule` must change.
struct QualityWeights {
  int rule = 1;
  double bias = 1, gain = 0.5, gain_least = 1, floor = 10, fit = 1, fit_least = 1;
};
inline constexpr QualityWeights kQualityWeights;

/// `with` is caption_logprob, `without` is caption_logprob_blind, and `least` is
/// caption_gain_least.
struct CaptionGain {
  double with = 0, without = 0, least = 0;
  std::size_t tokens = 0;
};
/// Computes the gain. `with` and `without` have ln p of each token, with the video and without it.
/// Throws Error if the lists are empty, or if their sizes differ.
CaptionGain caption_gain(std::span<const double> with, std::span<const double> without);

/// The known scores of one caption.
struct CaptionScores {
  text::TextChecks text;
  std::optional<CaptionGain> gain;
  std::vector<double> fits;  ///< caption_fits, or empty if unknown.

  /// Returns the fields for KEY.json. caption_quality is present only if `gain` and `fits` are
  /// known.
  Json fields() const;
};

/// Returns caption_fits. The arguments are unit vectors. If there are no sentences or no frames,
/// returns an empty list. Throws Error if the sizes of vectors differ or a number is not finite.
std::vector<double> sentence_fits(const std::vector<std::vector<float>>& sentences,
                                  const std::vector<std::vector<float>>& frames);

}  // namespace vfm::columns
