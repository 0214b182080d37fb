// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/shot_detector.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vfm::curate {
namespace {

constexpr int kAround = 3;       // frames on each side from which a cut must stand out
constexpr int kReturn = 8;       // a picture that returns within these frames was interrupted
constexpr float kStrong = 1.5f;  // times the threshold: a cut that is no part of a mixture
constexpr float kSame = 0.35f;   // structure_difference() below this means one scene
constexpr float kAnother = 4;    // minimum difference of another picture, in grey levels

/// Returns true if only grain differs, as when a slow zoom over a grainy photograph moves on by a
/// pixel after a rest. The mean of 16 unrelated cells differs by about a quarter of the difference
/// of one cell. Between two pictures, the mean differs by more than half.
bool only_grain_differs(const SmallPicture& a, const SmallPicture& b, float difference) {
  constexpr float kGrain = 0.35f;
  return coarse_difference(a, b) < std::min(kAnother, kGrain * difference);
}

/// Returns half of the structure difference, plus half of the residual relative to the contrast.
/// Both are limited, so that a flash to white is no better than a cut. If the structure hardly
/// changes, only light changes, and the score is reduced. Two flat pictures have no structure.
float combined_score(float structure, float residual, const FrameFeatures& a,
                     const FrameFeatures& b) {
  constexpr float kFlat = 6, kWhole = 0.15f;
  const float contrast = 0.5f * (a.deviation + b.deviation) + 2;
  const float score = 0.5f * std::min(structure, 1.2f) + 0.5f * std::min(residual / contrast, 1.5f);
  const bool flat = a.deviation < kFlat && b.deviation < kFlat;
  return flat ? score : score * std::min(1.f, structure / kWhole);
}

}  // namespace

double default_threshold(Detector detector) {
  return detector == Detector::transnetv2 ? 0.5 : 0.38;
}

const char* name_of(ChangeType type) {
  switch (type) {
    case ChangeType::cut:
      return "cut";
    case ChangeType::fade:
      return "fade";
    case ChangeType::dissolve:
      return "dissolve";
    case ChangeType::transition:
      return "transition";
    case ChangeType::wipe:
      break;
  }
  return "wipe";
}

ShotDetector::ShotDetector(const ShotOptions& options)
    : options_(options), threshold_(options.used_threshold()), gradual_(options.strictness) {}

void ShotDetector::push(const FrameFeatures& features) {
  const std::int64_t now = frames_++;
  ring_[slot(now)] = features;
  PairScore& score = scores_[slot(now)];
  score = {};
  if (now > 0) {
    const FrameFeatures& before = ring_[slot(now - 1)];
    motion_ = estimator_.estimate(before.picture, features.picture);
    score.difference = motion_.difference;
    score.residual = motion_.residual;
    // In most frames, the picture hardly changes, and the structure difference is about 0.
    if (motion_.difference > 1.5f) score.structure = structure_difference(before, features);
    score.combined = combined_score(score.structure, score.residual, before, features);
  }
  for (; judged_ + kReturn <= now; ++judged_)
    judge_cut(judged_);
  if (options_.gradual) {
    gradual_.push(features, motion_);
    collect_gradual();
  }
  merge(frames_ - kShotLag);
}

float ShotDetector::spike(std::int64_t f) const {
  // A frame must stand out from both sides: nearly fully from the quieter side, because noise is
  // all change, and less from the other side, which may be a wild shot or have another cut.
  float before = 0, after = 0;
  for (std::int64_t i = std::max<std::int64_t>(1, f - kAround); i < f; ++i)
    before = std::max(before, scores_[slot(i)].combined);
  for (std::int64_t i = f + 1; i <= std::min(frames_ - 1, f + kAround); ++i)
    after = std::max(after, scores_[slot(i)].combined);
  if (f == 1) before = after;
  if (f == frames_ - 1) after = before;
  return scores_[slot(f)].combined -
         std::max(0.6f * std::max(before, after), 0.9f * std::min(before, after));
}

/// Returns true if frames i < f <= k show one scene and f interrupts it: i and k differ less than
/// half as much as frame f and the frame before f.
bool ShotDetector::same_around(std::int64_t i, std::int64_t f, std::int64_t k) const {
  if (i < 0 || k >= frames_) return false;
  const FrameFeatures &before = ring_[slot(i)], &after = ring_[slot(k)];
  const float away = plain_difference(ring_[slot(f - 1)].picture, ring_[slot(f)].picture);
  return (plain_difference(before.picture, after.picture) < 0.5f * away &&
          structure_difference(before, after) < kSame) ||
         same_restless(i, f, k);
}

/// Tests the same for a scene in which each frame is another picture (snow, water, a far crowd).
/// Frames i and k must have the same colours, f or the frame before f other colours. The structure
/// may change from i to k about as much as in the same time before i.
bool ShotDetector::same_restless(std::int64_t i, std::int64_t f, std::int64_t k) const {
  constexpr float kAsMuch = 1.2f;
  const std::int64_t earlier = i - (k - i);
  if (earlier < std::max<std::int64_t>(0, frames_ - kRing) || k >= frames_) return false;
  const FrameFeatures &past = ring_[slot(earlier)], &before = ring_[slot(i)],
                      &after = ring_[slot(k)];
  const float restless = structure_difference(past, before);
  return restless >= kSame && structure_difference(before, after) <= kAsMuch * restless &&
         histogram_difference(before, after) < kSameColours &&
         histogram_difference(past, before) < kSameColours &&
         std::max(histogram_difference(before, ring_[slot(f - 1)]),
                  histogram_difference(before, ring_[slot(f)])) > kOtherColours;
}

/// Returns true if frame f begins or ends a flash, a glitch or something that passes: the scene
/// before f soon returns, or the scene after f was there shortly before. A short shot is excluded.
bool ShotDetector::interrupts(std::int64_t f) const {
  if (one_view(f) || swings(f)) return true;
  for (int n = 1; n <= kReturn; ++n)
    if (same_around(f - 1, f, f + n)) {
      if (!is_short_shot(f, f + n)) return true;
      break;
    }
  for (int n = 1; n <= kReturn; ++n)
    for (int later = 0; later < 3; ++later)
      if (same_around(f - 1 - n, f, f + later)) return !is_short_shot(f - n, f);
  return false;
}

void ShotDetector::judge_cut(std::int64_t f) {
  const float standing_out = spike(f);
  const bool restless = standing_out < threshold_ && begins_restless(f);
  // The score of a cut by colours is the threshold, because such a cut can be part of a mixture.
  const float score = restless ? static_cast<float>(threshold_) : standing_out;
  using Verdict = Judgement::Verdict;
  const float difference = scores_[slot(f)].difference;
  const auto alike = [&] {
    return difference < kAnother ||
           only_grain_differs(ring_[slot(f - 1)].picture, ring_[slot(f)].picture, difference);
  };
  const Verdict verdict = !restless && score < threshold_ ? Verdict::below
                          : alike()                       ? Verdict::alike
                          : interrupts(f)                 ? Verdict::interrupts
                                                          : Verdict::cut;
  if (options_.explain) judgements_.push_back({f, score, verdict});
  if (verdict == Verdict::cut) cuts_.push_back({ChangeType::cut, f, f, f, score});
}

void ShotDetector::collect_gradual() {
  for (const GradualChange& g : gradual_.take())
    if (g.soft || g.uniform ? !interrupts(g) : !gradual_.one_view(g)) changes_.push_back(g);
  std::sort(changes_.begin(), changes_.end(),
            [](const GradualChange& a, const GradualChange& b) { return a.end < b.end; });
}

/// Returns true if one scene lies before and after a short change. For a fade, compares frames
/// farther away, in which the scene is visible.
bool ShotDetector::interrupts(const GradualChange& g) const {
  const bool parts_plain = g.fade && g.begin == g.end;  // a plain shot and another
  if (g.begin - g.end > kReturn || parts_plain) return false;
  // Not for a fade, because faint pictures of one shot can be on both sides of the run.
  if (!g.fade && gradual_.one_view(g)) return true;
  for (int away = g.fade ? 2 : 0; away <= (g.fade ? kReturn : 0); ++away) {
    const std::int64_t before = g.end - 1 - away, after = std::min(g.begin + away, frames_ - 1);
    if (before < std::max<std::int64_t>(0, frames_ - kRing)) break;
    if (structure_difference(ring_[slot(before)], ring_[slot(after)]) < kSame) return true;
  }
  // A flash may be brightest in the middle, so frames next to the change can belong to the flash.
  for (int early = 0; early <= 2; ++early)
    for (int late = 0; late <= 2; ++late)
      if (same_restless(g.end - 1 - early, g.end, g.begin + late)) return true;
  return false;
}

/// If the scene before frame `end` returns gradually after frame `begin`, as after an explosion,
/// smoke or something large that passes, returns the frame by which the scene is back. Also finds
/// what came gradually and goes with this change.
std::optional<std::int64_t> ShotDetector::comes_back(std::int64_t end, std::int64_t begin) const {
  if (!options_.gradual || end <= 0 || begin >= frames_) return std::nullopt;
  // A plain picture that changes its shade and stays is no other shot.
  const bool shade = gradual_.same_ground(end - 1, begin);
  if (shade && gradual_.same_ground(end - 1, std::min(begin + kReturn, frames_ - 1))) return begin;
  // A title on a plain picture comes and goes at once.
  if (!shade && gradual_.most_stays(begin))
    for (std::int64_t k = begin + 1; k < std::min(frames_, begin + kBlast); ++k)
      if (gradual_.same_ground(end - 1, k)) return k;
  // With a cut, or after another cut, a scene returns as a new shot.
  std::int64_t last = std::min(frames_, begin + kBlast);
  for (const ShotChange& c : cuts_)
    if (c.frame > begin &&
        (c.score >= kStrong * threshold_ || gradual_.same_scene(end - 1, c.begin, begin)))
      last = std::min(last, c.frame);
  for (const GradualChange& g : changes_)
    if (g.soft && g.end > begin && gradual_.same_scene(end - 1, g.begin, begin))
      last = std::min(last, g.end);
  // The interruption may be strongest some frames later.
  for (std::int64_t k = begin + kReturn; k < last; ++k)
    if (gradual_.same_scene(end - 1, k, begin) || gradual_.same_scene(end - 1, k, begin + 2))
      return k;
  // The rest of an explosion can stay visible for some frames.
  for (std::int64_t k = begin; k < std::min(last, begin + kBlast); k += kReturn / 2)
    for (std::int64_t i = end - kReturn; i >= std::max(last_begin_, end - kBlast); --i)
      if (gradual_.same_scene(i, k, end - 1)) return k;
  if (begin - end > 2) return std::nullopt;  // GradualDetector::one_view() was called before
  for (std::int64_t k = begin + kReturn; k < std::min(last, begin + kBlast); k += kReturn)
    for (std::int64_t i = end - 1; i >= std::max(last_begin_, end - 1 - kReturn); i -= kReturn)
      if (gradual_.one_view(i, k)) return k;
  return std::nullopt;
}

/// Makes changes before frame `until` certain. If a gradual change contains cuts, one of the two is
/// wrong: a strong cut cannot be part of a mixture, but a weak cut can.
void ShotDetector::merge(std::int64_t until) {
  while (true) {
    // The end of a fade to one colour is no cut.
    if (const auto fade = gradual_.open_fade())
      std::erase_if(cuts_, [&](const ShotChange& c) { return c.frame >= *fade - 1; });
    const bool have_cut = !cuts_.empty() && cuts_.front().frame < until;
    const bool have_change = !changes_.empty() && changes_.front().end < until;
    if (!have_cut && !have_change) return;
    if (!have_change || (have_cut && cuts_.front().frame < changes_.front().end - 1)) {
      const ShotChange cut = cuts_.front();
      cuts_.erase(cuts_.begin());
      if (const auto back = comes_back(cut.end, cut.begin)) {
        std::erase_if(cuts_, [&](const ShotChange& c) { return c.frame <= *back; });
        std::erase_if(changes_, [&](const GradualChange& g) {
          return !g.uniform && g.end > cut.end && g.begin <= *back;
        });
        continue;
      }
      certain_.push_back(cut);
      last_begin_ = cut.begin;
      continue;
    }
    const GradualChange g = changes_.front();
    changes_.erase(changes_.begin());
    // A picture that closes to black and opens again contains the black run.
    const auto encloses = [&g](const GradualChange& other) {
      return g.transition && other.uniform && other.end >= g.end && other.begin <= g.begin;
    };
    // The first part of a wipe looks like a transition, in whose first half the wipe begins.
    const auto goes_on = [&g](const GradualChange& other) {
      return g.transition && other.end - g.end < g.begin - other.end;
    };
    if (!g.uniform &&
        std::any_of(changes_.begin(), changes_.end(), [&](const GradualChange& other) {
          return (other.uniform && !encloses(other) && other.end <= g.begin) ||
                 ((other.begin <= g.begin || goes_on(other)) && other.score > g.score);
        }))
      continue;  // a part of the fade that follows, or of a better change
    // Something between two runs of the same plain picture interrupts one shot.
    if (g.resumes >= last_begin_) continue;
    const auto inside = [&](const ShotChange& c) {
      return c.frame >= g.end - 1 && c.frame <= g.begin + 1;
    };
    const bool cut_tells_better =
        !g.uniform && std::any_of(cuts_.begin(), cuts_.end(), [&](const ShotChange& c) {
          return inside(c) && (g.soft || c.score >= kStrong * threshold_);
        });
    // A change that was already returned is dropped. A run of one colour is kept, because its
    // frames belong to no shot.
    const bool again = g.end < last_begin_;
    if (cut_tells_better || (again && (!g.uniform || g.begin <= last_begin_))) continue;
    if (const auto back = g.uniform && g.fade ? std::nullopt : comes_back(g.end, g.begin)) {
      std::erase_if(cuts_, [&](const ShotChange& c) { return c.frame <= *back; });
      continue;
    }
    // If a cut led into the run, the old shot ends with this cut, and a fade-in follows.
    const auto into = std::find_if(cuts_.begin(), cuts_.end(), [&](const ShotChange& c) {
      return g.abrupt && c.frame == g.end && c.frame > last_begin_;
    });
    if (into != cuts_.end()) certain_.push_back(*into);
    std::erase_if(cuts_, inside);
    std::erase_if(changes_, encloses);
    const ChangeType type = g.transition ? ChangeType::transition
                            : g.wipe     ? ChangeType::wipe
                            : g.fade     ? ChangeType::fade
                            : g.soft     ? ChangeType::cut
                                         : ChangeType::dissolve;
    certain_.push_back({type, std::max(g.end, last_begin_), g.begin, g.middle, g.score});
    last_begin_ = g.begin;
  }
}

void ShotDetector::finish() {
  gradual_.finish();
  collect_gradual();
  for (; judged_ < frames_; ++judged_)
    judge_cut(judged_);
  merge(frames_ + 1);
  finished_ = true;
}

std::vector<ShotChange> ShotDetector::take() {
  return std::exchange(certain_, {});
}

std::vector<Judgement> ShotDetector::take_judgements() {
  return std::exchange(judgements_, {});
}

std::int64_t ShotDetector::settled() const {
  return finished_ ? frames_ : std::max<std::int64_t>(0, frames_ - kShotLag);
}

std::optional<std::int64_t> ShotDetector::open_fade() const {
  return gradual_.open_fade();
}

}  // namespace vfm::curate
