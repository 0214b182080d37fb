// SPDX-License-Identifier: Apache-2.0
#include "curate/copies/align_videos.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "curate/copies/crop_sampler.h"

namespace vfm::curate {
namespace {

constexpr std::size_t kProbes = 16;  // moments compared to refine a place
constexpr double kHopeless = 0.12;   // minimum correlation at the start; wrong starts are near 0
// Limits of the noise. A change as strong as its noise has the evidence 1/2.
constexpr double kMostNoise = 1.5, kLeastNoise = 0.5;
constexpr double kPictureNoise = 9;    // variance of pictures that counts as noise
constexpr std::ptrdiff_t kSmooth = 4;  // moments on each side in a mean correlation
constexpr std::size_t kBridged = 4;    // longest gap of a match, in moments that do not agree

struct Overlap {
  std::size_t begin, end;
};
Overlap overlap_of(std::size_t first, std::size_t second, double offset) {
  const auto low = static_cast<std::ptrdiff_t>(std::ceil(kFirstMoment - offset));
  // change_between() also reads the next moment.
  const auto high = static_cast<std::ptrdiff_t>(
      std::floor(static_cast<double>(moments_end(first)) - 1 - offset + 1e-9));
  const auto begin = std::max<std::ptrdiff_t>(kFirstMoment, low);
  const auto end = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(moments_end(second)), high);
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(std::max(begin, end))};
}

void change_between(std::span<const SignaturePicture> pictures, double moment, ChangePicture& out) {
  const auto k = static_cast<std::size_t>(moment);
  const auto part = static_cast<float>(moment - static_cast<double>(k));
  change_at(pictures, k, out);
  if (part < 1e-3F) return;
  ChangePicture next;
  change_at(pictures, k + 1, next);
  for (std::size_t i = 0; i < kSignatureCells; ++i)
    out[i] += part * (next[i] - out[i]);
}

/// Estimates the noise of a change. The limit is for moving cameras, which also change all cells.
double noise_in(const ChangePicture& change) {
  return std::clamp(2.0 * change_noise(change), kLeastNoise, kMostNoise);
}

/// Returns the certainty, 0 to 1, that something changes.
double evidence_of(double strength, double noise) {
  return strength * strength / (strength * strength + noise * noise);
}
/// A weak change in only one video is little evidence, because compression removes weak changes.
double evidence_of(const Correlation& found, double first_noise, double second_noise) {
  const double weak = std::min(evidence_of(found.first_strength, first_noise),
                               evidence_of(found.second_strength, second_noise));
  const double strongest = std::max(found.first_strength, found.second_strength);
  return std::max(weak, evidence_of(strongest, kMostNoise));
}

/// A change of the second video, and the changes of the first video around the counterpart.
class Probe {
 public:
  static constexpr int kAround = 3;  // moments on each side

  Probe(std::span<const SignaturePicture> first, std::span<const SignaturePicture> second,
        std::size_t moment, std::ptrdiff_t counterpart) {
    change_at(second, moment, change_);
    for (std::ptrdiff_t i = 0; i < 2 * kAround + 1; ++i) {
      const auto low = static_cast<std::ptrdiff_t>(kFirstMoment);
      const auto last = static_cast<std::ptrdiff_t>(moments_end(first.size())) - 1;
      change_at(first, static_cast<std::size_t>(std::clamp(counterpart + i - kAround, low, last)),
                around_[static_cast<std::size_t>(i)]);
    }
    first_noise_ = noise_in(around_[kAround]);
    second_noise_ = noise_in(change_);
  }
  /// Returns the correlation with the change `shift` moments later, for |shift| < kAround.
  Correlation at(double shift, const CropSampler& sampler) const {
    const double place = shift + kAround;
    const auto k = static_cast<std::size_t>(place);
    const auto part = static_cast<float>(place - static_cast<double>(k));
    ChangePicture between;
    const ChangePicture &a = around_[k], &b = around_[std::min<std::size_t>(k + 1, 2 * kAround)];
    for (std::size_t i = 0; i < kSignatureCells; ++i)
      between[i] = a[i] + part * (b[i] - a[i]);
    return sampler.correlate(between, change_);
  }
  double weight(const Correlation& found) const {
    return evidence_of(found, first_noise_, second_noise_);
  }

 private:
  double first_noise_, second_noise_;
  ChangePicture change_;
  std::array<ChangePicture, 2 * kAround + 1> around_;
};

/// A time shift and a crop. `score` is the mean correlation of the probes.
struct Place {
  double shift = 0;
  CropWindow crop;
  double score = -1;
};

double score_at(const std::vector<Probe>& probes, double shift, const CropWindow& crop) {
  const std::optional<CropSampler> sampler = CropSampler::of(crop);
  if (!sampler) return -1;
  double sum = 0, weights = 0;
  for (const Probe& probe : probes) {
    const Correlation found = probe.at(shift, *sampler);
    const double weight = probe.weight(found);
    sum += weight * found.value;
    weights += weight;
  }
  return weights > 0 ? sum / weights : -1;
}

/// Improves the place one coordinate at a time, in steps that get smaller.
Place refine(const std::vector<Probe>& probes, Place place) {
  constexpr std::array kSteps = {0.05, 0.025, 0.0125};
  const auto try_place = [&](double shift, const CropWindow& crop) {
    if (std::abs(shift) > Probe::kAround - 1) return false;
    const double score = score_at(probes, shift, crop);
    if (score <= place.score + 1e-4) return false;
    place = {shift, crop, score};
    return true;
  };
  for (const double step : kSteps) {
    const double time_step = 10 * step;
    for (int round = 0; round < 8; ++round) {
      bool better = false;
      for (const double way : {-1.0, 1.0}) {
        better |= try_place(place.shift + way * time_step, place.crop);
        for (double CropWindow::*edge :
             {&CropWindow::left, &CropWindow::right, &CropWindow::top, &CropWindow::bottom}) {
          CropWindow moved = place.crop;
          moved.*edge += way * step;
          better |= try_place(place.shift, moved);
        }
      }
      if (!better) break;
    }
  }
  return place;
}

/// Returns the moments near `start` with the strongest changes, at least half a second apart.
std::vector<std::size_t> choose_moments(std::span<const SignaturePicture> second,
                                        const AlignmentStart& start, const Overlap& overlap) {
  constexpr std::size_t kMargin = 2 * kSignatureRate;
  const std::size_t from = std::max(overlap.begin, start.from - std::min(start.from, kMargin));
  const std::size_t to = std::min(overlap.end, start.to + kMargin);
  std::vector<std::pair<float, std::size_t>> strengths;
  ChangePicture change;
  for (std::size_t k = from; k < to; ++k) {
    change_at(second, k, change);
    strengths.emplace_back(-change_strength(change), k);
  }
  std::sort(strengths.begin(), strengths.end());
  std::vector<std::size_t> chosen;
  for (const auto& [strength, k] : strengths) {
    const bool near = std::any_of(chosen.begin(), chosen.end(), [k = k](std::size_t other) {
      return (k > other ? k - other : other - k) < 2;
    });
    if (!near) chosen.push_back(k);
    if (chosen.size() == kProbes) break;
  }
  return chosen;
}

struct Moment {
  double correlation = 0, evidence = 0, detail = 0, picture = 0;
};

std::vector<Moment> compare_all(std::span<const SignaturePicture> first,
                                std::span<const SignaturePicture> second, const Overlap& overlap,
                                double offset, const CropSampler& sampler) {
  std::vector<Moment> moments;
  ChangePicture a, b;
  for (std::size_t k = overlap.begin; k < overlap.end; ++k) {
    const double counterpart = static_cast<double>(k) + offset;
    change_between(first, counterpart, a);
    change_at(second, k, b);
    const Correlation found = sampler.correlate(a, b);
    const auto nearest = static_cast<std::size_t>(std::lround(counterpart));
    moments.push_back({found.value, evidence_of(found, noise_in(a), noise_in(b)), change_detail(b),
                       sampler.correlate_pictures(first[nearest], second[k], kPictureNoise)});
  }
  return moments;
}

/// Returns true for moments around which the videos agree. Without change, the pictures decide.
std::vector<bool> agreeing(const std::vector<Moment>& moments, const MatchRules& rules) {
  constexpr double kNothing = 0.5;  // less evidence around a moment is no change
  std::vector<bool> agree(moments.size());
  const auto count = static_cast<std::ptrdiff_t>(moments.size());
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    double sum = 0, evidence = 0, pictures = 0;
    const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, k - kSmooth);
    const std::ptrdiff_t to = std::min(count, k + kSmooth + 1);
    for (std::ptrdiff_t i = from; i < to; ++i) {
      const Moment& moment = moments[static_cast<std::size_t>(i)];
      sum += moment.evidence * moment.correlation;
      evidence += moment.evidence;
      pictures += moment.picture;
    }
    const bool same_pictures = pictures >= rules.least_picture * static_cast<double>(to - from);
    agree[static_cast<std::size_t>(k)] =
        same_pictures && (evidence < kNothing || sum >= rules.least_change * evidence);
  }
  return agree;
}

std::optional<VideoMatch> stretch(const std::vector<Moment>& moments, std::size_t from,
                                  std::size_t to, std::size_t overlap_begin,
                                  const MatchRules& rules) {
  VideoMatch match;
  // The change at moment k depends on the pictures k - 2 to k + 1.
  match.begin = overlap_begin + from - 2;
  match.end = overlap_begin + to + 1;
  if (match.end - match.begin < rules.least_pictures) return std::nullopt;
  double sum = 0, detail = 0;
  for (std::size_t k = from; k < to; ++k) {
    sum += moments[k].evidence * moments[k].correlation;
    detail += moments[k].evidence * moments[k].detail;
    match.evidence += moments[k].evidence;
  }
  if (match.evidence < rules.least_evidence) return std::nullopt;
  match.score = sum / match.evidence;
  const double least =
      rules.least_score(match.end - match.begin, match.evidence, detail / match.evidence);
  return match.score >= least ? std::optional(match) : std::nullopt;
}

}  // namespace

std::vector<VideoMatch> align_videos(std::span<const SignaturePicture> first,
                                     std::span<const SignaturePicture> second,
                                     const AlignmentStart& start, const MatchRules& rules) {
  const Overlap near = overlap_of(first.size(), second.size(), start.offset);
  const auto whole = static_cast<std::ptrdiff_t>(std::lround(start.offset));
  std::vector<Probe> probes;
  probes.reserve(kProbes);
  for (const std::size_t k : choose_moments(second, start, near))
    probes.emplace_back(first, second, k, static_cast<std::ptrdiff_t>(k) + whole);
  Place place{0, start.crop, score_at(probes, 0, start.crop)};
  if (place.score < kHopeless) return {};
  place = refine(probes, place);
  if (place.score < rules.least_change) return {};

  const double offset = static_cast<double>(whole) + place.shift;
  const Overlap overlap = overlap_of(first.size(), second.size(), offset);
  const CropSampler sampler = *CropSampler::of(place.crop);
  const std::vector<Moment> moments = compare_all(first, second, overlap, offset, sampler);
  const std::vector<bool> agree = agreeing(moments, rules);
  std::vector<VideoMatch> matches;
  for (std::size_t from = 0; from < agree.size();) {
    if (!agree[from]) {
      ++from;
      continue;
    }
    std::size_t to = from + 1;
    for (std::size_t k = to; k < agree.size() && k - to <= kBridged; ++k)
      if (agree[k]) to = k + 1;
    if (std::optional<VideoMatch> match = stretch(moments, from, to, overlap.begin, rules)) {
      match->offset = offset;
      match->crop = place.crop;
      matches.push_back(*match);
    }
    from = to;
  }
  return matches;
}

}  // namespace vfm::curate
