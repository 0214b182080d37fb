// How GradualDetector finds transitions other than dissolves and straight wipes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "curate/shots/gradual.h"
#include "curate/shots/parts_between.h"

namespace vfm::curate {
namespace {

constexpr int kShortest = 10;     // frames; shorter transitions look like many other changes
constexpr float kStill = 0.015f;  // largest progress before the transition begins

}  // namespace

/// Tests every second frame only, because the ends of a found transition are then adjusted.
std::optional<GradualDetector::Candidate> GradualDetector::judge_transition(std::int64_t a,
                                                                            std::int64_t b) const {
  constexpr float kRelated = 0.55f;
  if (b - std::max(a, best_end_) < kShortest || a < kAfter || b % 2 != 0) return std::nullopt;
  if (best_ && a < best_->b && best_->quality >= kBest) return std::nullopt;
  if (correlation(at(a), at(b)) > kRelated) return std::nullopt;
  std::optional<Candidate> c = judge_parts(a, b);
  if (!c) c = judge_crop(a, b);
  if (!c) c = judge_moved(a, b);
  if (!c || c->a < best_end_) return std::nullopt;
  // From or to black, a picture fades, or closes and opens: then only the whole change counts.
  const auto dark = [&](std::int64_t i) { return at(std::min(i, frames_ - 1)).mean[0] < kBlack; };
  for (std::int64_t away = 0; away <= kAfter; ++away)
    for (const std::int64_t i : {c->a - away, std::min(c->b + away, frames_ - 1)})
      if (i >= 0 && at(i).uniform && dark(i)) return std::nullopt;
  if (dark(c->a) && best_end_ > 0 && c->a < best_end_ + kBlast) return std::nullopt;
  c->closes = dark(c->b);
  c->change.transition = true;
  c->change.score = c->quality;
  c->change.end = c->a + 1;
  c->change.begin = c->b;
  return c;
}

/// A longer candidate is more likely to be the whole transition.
float GradualDetector::quality_of(float misfit, std::int64_t length) {
  return kBest * (1 - misfit) * (0.6f + 0.4f * static_cast<float>(length) / 64);
}

/// Returns how well the parts of the picture change from a to b, or nullopt if they do not change
/// from the one picture to the other and only forwards.
std::optional<GradualDetector::PartsFit> GradualDetector::fit_parts(std::int64_t a,
                                                                    std::int64_t b) const {
  constexpr int kSamples = 8;
  constexpr float kMisfit = 0.06f, kAnyMisfit = 0.2f;
  constexpr float kPure = 0.15f;  // share of the other picture in a part that shows one picture
  const CoarsePicture &first = at(a).coarse, &last = at(b).coarse;
  std::array<PartsBetween, kSamples> seen;
  PartsFit fit;
  for (const int i : {4, 2, 6, 1, 3, 5, 7}) {  // most windows fail at the middle
    const std::int64_t frame = a + ((b - a) * i + kSamples / 2) / kSamples;
    seen[i] = parts_between(first, at(frame).coarse, last);
    fit.misfit += seen[i].misfit / (kSamples - 1);
    if (seen[i].misfit > kAnyMisfit || strictness_ * fit.misfit > kMisfit) return std::nullopt;
  }
  float before = 0, mixed = 0, all = 0, back = 0, between = 0, most_between = 0;
  for (int i = 1; i < kSamples; ++i) {
    const PartsBetween& now = seen[i];
    fit.step = std::max(fit.step, now.progress - before);
    before = now.progress;
    if (i > 1) back += parts_going_back(seen[i - 1], now);
    float whole = 0;
    for (int k = 0; k < kParts; ++k) {
      whole += now.weight[k];
      between += now.weight[k] * now.share[k] * (1 - now.share[k]);
      if (now.share[k] > kPure && now.share[k] < 1 - kPure) mixed += now.weight[k];
    }
    all += whole;
    most_between += whole * now.progress * (1 - now.progress);
  }
  fit.step = std::max(fit.step, 1 - before);
  fit.mixed = mixed / std::max(all, 1.f);
  fit.at_once = between / std::max(most_between, 1.f);
  fit.misfit += 0.5f * back;
  return strictness_ * fit.misfit <= kMisfit ? std::optional(fit) : std::nullopt;
}

/// Returns [from, to] without the frames at the ends that rest.
std::pair<std::int64_t, std::int64_t> GradualDetector::trimmed(std::int64_t from,
                                                               std::int64_t to) const {
  const CoarsePicture first = at(from).coarse, last = at(to).coarse;
  const auto progress = [&](std::int64_t i) {
    return parts_between(first, at(i).coarse, last).progress;
  };
  while (from + 1 < to && progress(from + 1) < kStill)
    ++from;
  while (to - 1 > from && progress(to - 1) > 1 - kStill)
    --to;
  return {from, to};
}

/// Returns the change per frame around [a, b], divided by the change per frame within [a, b].
float GradualDetector::unrest(std::int64_t a, std::int64_t b) const {
  const std::int64_t after = std::min(b + kAfter, frames_ - 1);
  const float before_it = change(at(a - kAfter), at(a)) / kAfter;
  const float behind_it =
      after > b ? change(at(b), at(after)) / static_cast<float>(after - b) : 0.f;
  return std::max(before_it, behind_it) * static_cast<float>(b - a) / change(at(a), at(b));
}

/// Returns true if the frames around [a, b] look like its ends. A plain end must hardly change.
bool GradualDetector::ends_rest(std::int64_t a, std::int64_t b) const {
  constexpr float kLittle = 0.25f;
  if (std::min(at(a).energy, at(b).energy) >= kPlain) return ends_hold(a, b);
  const float most = kLittle * change(at(a), at(b));
  return change(at(a - kAfter), at(a)) <= most &&
         change(at(b), at(std::min(b + kAfter, frames_ - 1))) <= most;
}

/// Finds a transition in which each part of the picture changes at its own time, as when an edge of
/// any form passes. At any time, most parts show one of the pictures. In a scene that moves or
/// turns, parts are mixed for longer. In a fade or dissolve, all parts change at once.
std::optional<GradualDetector::Candidate> GradualDetector::judge_parts(std::int64_t a,
                                                                       std::int64_t b) const {
  constexpr float kChanged = 0.6f;  // of the cells; a title changes fewer
  constexpr float kSoftMixed = 0.55f, kSoftStep = 0.45f, kSoftRelated = 0.3f;
  constexpr float kHardMixed = 0.3f, kHardStep = 0.36f, kClear = 0.2f, kSure = 0.02f;
  constexpr float kMisfit = 0.035f, kUnrest = 1.5f;
  constexpr float kAtOnce = 0.9f;  // generated fades and dissolves have 0.93 or more
  std::optional<PartsFit> fit = fit_parts(a, b);
  if (!fit || fit->mixed > kSoftMixed || fit->step > kSoftStep || fit->at_once > kAtOnce)
    return std::nullopt;
  const auto [from, to] = trimmed(a, b);
  if (to - from < kShortest) return std::nullopt;
  fit = fit_parts(from, to);
  if (!fit || fit->at_once > kAtOnce ||
      wipe_frame(at(from).coarse, at(to).coarse, at(to).coarse).changed < kChanged)
    return std::nullopt;
  const float restless = unrest(from, to);
  const bool close = strictness_ * fit->misfit <= kMisfit;
  const bool plain = at(from).uniform || at(to).uniform;
  const bool hard = fit->mixed <= (plain ? kClear : kHardMixed) && fit->step <= kHardStep &&
                    (close || fit->mixed <= kClear) &&
                    restless <= std::min(2 * kUnrest, kUnrest + 10 * (kHardMixed - fit->mixed));
  const bool soft = fit->mixed <= kSoftMixed && fit->step <= kSoftStep && close &&
                    restless <= kUnrest && !plain && correlation(at(from), at(to)) <= kSoftRelated;
  if ((!hard && !soft) || !ends_rest(from, to)) return std::nullopt;
  if ((!hard || fit->misfit >= kSure) && moves(from, to)) return std::nullopt;
  Candidate c{from, to, quality_of(8 * fit->misfit, to - from), {}};
  c.change.middle = to;
  for (std::int64_t i = to - 1; i > from; --i) {
    if (parts_between(at(from).coarse, at(i).coarse, at(to).coarse).progress < 0.5f) break;
    c.change.middle = i;
  }
  return c;
}

/// Finds a picture that closes to one colour, part by part, and a picture that opens from it.
std::optional<GradualDetector::Candidate> GradualDetector::judge_crop(std::int64_t a,
                                                                      std::int64_t b) const {
  constexpr int kLeast = 4;  // minimum number of frames to close, and to open
  constexpr float kMixed = 0.35f, kStep = 0.6f;
  std::int64_t closed = ground_begin_, opens = ground_end_;
  if (run_begin_ && run_end_) closed = *run_begin_, opens = *run_end_;
  if (closed < a + kLeast || opens > b - kLeast) return std::nullopt;
  const auto fit = [&](std::int64_t from, std::int64_t to) -> std::optional<PartsFit> {
    const std::optional<PartsFit> all = to - from < kLeast ? std::nullopt : fit_parts(from, to);
    return all && all->mixed <= kMixed && all->step <= kStep ? all : std::nullopt;
  };
  const std::int64_t from = trimmed(a, closed).first, to = trimmed(opens - 1, b).second;
  const std::optional<PartsFit> closing = fit(from, closed);
  if (!closing) return std::nullopt;
  const std::optional<PartsFit> opening = fit(opens - 1, to);
  if (!opening || !ends_hold(from, to)) return std::nullopt;
  Candidate c{from, to, quality_of(0, to - from), {}};
  c.change.middle = opens;
  c.through = true;
  return c;
}

}  // namespace vfm::curate
