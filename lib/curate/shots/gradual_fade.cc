// How GradualDetector finds fades: by runs of frames of one colour, and by contrast around a run.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "curate/shots/gradual.h"

namespace vfm::curate {
namespace {

constexpr int kRamp = 12;       // frames in which a fade must be visible
constexpr int kShortRun = 12;   // longest black run that is no shot of its own
constexpr int kFlash = 4;       // longest run of another colour that is no shot
constexpr int kPlainShot = 32;  // minimum length of a shot of one colour, except black
constexpr float kStep = 0.75f;  // largest share of a fade in one frame

}  // namespace

/// Returns true if contrast grows over several frames from `from` on in `direction`, 1 or -1, and
/// the content of the picture does not change or move.
bool GradualDetector::contrast_ramps(std::int64_t from, int direction, std::int64_t last) const {
  const auto inside = [&](std::int64_t i) {
    return i >= std::max<std::int64_t>(0, frames_ - kRing) && i <= last;
  };
  if (!inside(from) || !inside(from + 3 * direction)) return false;
  std::int64_t far = from;
  float peak = at(from).energy;
  const std::int64_t run = from - direction;
  const auto apart = [&](std::int64_t i, std::int64_t k) {
    return coarse_difference(at(i).picture, at(k).picture);
  };
  for (int k = 1; k <= kRamp && inside(from + k * direction); ++k) {
    const std::int64_t i = from + k * direction;
    const Tiny& p = at(i);
    if (p.energy < 0.8f * peak) break;                           // another fade begins
    if (apart(i - direction, i) > kStep * apart(run, i)) break;  // or another shot
    if (p.energy > peak) peak = p.energy, far = from + k * direction;
  }
  // Contrast is the root of energy. A cut shows full contrast at once, or after one blended frame.
  if (std::abs(far - from) < 3 || at(from + direction).energy > 0.5f * peak) return false;
  const std::int64_t near = from + (far - from) / 2;
  // A thing that appears in a part of a plain picture does not fade in, except a title on black.
  const bool ground = same_ground(run, run);
  if (ground && share_changed(run, far) < 0.25f) return false;
  // The fade must get near the colour of the run, because a faint picture may end with a cut.
  if (apart(run, from) > 0.5f * apart(run, far)) return false;
  return correlation(at(near), at(far)) > 0.5f && !enters(std::min(from, far), std::max(from, far));
}

/// Tests light instead of contrast, from the black frame `from` on. This is for shots with little
/// contrast, or with another picture in each frame.
bool GradualDetector::light_ramps(std::int64_t from, int direction, std::int64_t last) const {
  constexpr float kLight = 32, kGrows = 0.5f;  // grey levels
  std::int64_t far = from;
  float steepest = 0;
  for (int k = 1; k <= kRamp; ++k) {
    const std::int64_t i = from + k * direction;
    if (i < std::max<std::int64_t>(0, frames_ - kRing) || i > last) break;
    const float step = at(i).mean[0] - at(far).mean[0];
    if (step < kGrows) break;
    steepest = std::max(steepest, step);
    far = i;
  }
  const float whole = at(far).mean[0] - at(from).mean[0];
  return std::abs(far - from) >= 3 && whole > kLight && steepest < 0.5f * whole;
}

/// Splits a run where it changes between black and another colour, unless this may be part of a
/// fade, whose pictures can be plain near black.
void GradualDetector::follow_light(std::int64_t now) {
  constexpr float kLeap = 16;  // grey levels
  const bool black = at(now).mean[0] < kBlack;
  if (black && last_black_ < 0 && now > *run_begin_ && !run_faded_in_) {
    const bool fades = light_ramps(now, -1, now);
    const bool cut = !fades && at(now - 1).mean[0] - at(now).mean[0] > kLeap;
    if (cut) close_run(now, now);
    if (cut || fades) {
      run_begin_ = now;
      run_faded_in_ = fades;
      run_cut_into_ = cut;
    }
  } else if (!black && last_black_ >= 0 && now - last_black_ > kPlainShot) {
    const std::int64_t begin = last_black_ + 1;
    close_run(begin, now);
    run_begin_ = begin;
    run_cut_into_ = false;
  }
  if (black) last_black_ = now;
}

void GradualDetector::follow_uniform_runs(std::int64_t now) {
  const bool uniform = at(now).uniform;
  if (run_end_ && (now - *run_end_ >= kRamp || uniform))
    close_run(*run_end_, uniform ? now - 1 : now);
  if (uniform && !run_begin_) {
    run_begin_ = now;
    run_faded_in_ = now > 0 && contrast_ramps(now - 1, -1, now - 1);
    // Contrast is the root of energy. Before a cut, contrast is about constant.
    run_cut_into_ = !run_faded_in_ && now > 3 && at(now - 1).energy > 0.5f * at(now - 4).energy;
  } else if (!uniform && run_begin_ && !run_end_) {
    run_end_ = now;
  }
  if (uniform) {
    follow_light(now);
    stay_plain(now);
  }
  // After an explosion or a title has faded, the earlier plain picture returns.
  if (uniform && run_resumes_ < 0 && now - *run_begin_ < kRamp && ground_end_ > 0 &&
      *run_begin_ - ground_end_ <= kBlast && same_ground(ground_end_ - 1, now))
    run_resumes_ = ground_end_;
}

/// A long run after a fade is a shot, and the change ends at the first frame of the run. A black
/// run separates two shots at any length.
void GradualDetector::stay_plain(std::int64_t now) {
  if (!run_faded_in_ || run_resumes_ >= 0 || last_black_ >= 0 || now - *run_begin_ < kPlainShot)
    return;
  GradualChange change;
  change.end = change.begin = change.middle = *run_begin_;
  change.fade = change.uniform = true;
  change.score = 1;
  found_.push_back(change);
  run_faded_in_ = false;
  run_is_shot_ = true;
}

/// Ends the run [*run_begin_, end). Frames up to `last` are known.
void GradualDetector::close_run(std::int64_t end, std::int64_t last) {
  const std::int64_t begin = *run_begin_;
  const bool ramps_out =
      contrast_ramps(end, +1, last) || (last_black_ >= 0 && light_ramps(last_black_, +1, last));
  if (run_faded_in_ || ramps_out ||
      (begin > 0 && end - begin <= (same_ground(begin, begin) ? kFlash : kShortRun) &&
       !most_stays(begin) && !most_stays(end))) {
    GradualChange change;
    // If a cut led into a long run, or if the run resumes another, its frames are already a shot.
    const bool given_away = !run_faded_in_ || run_resumes_ >= 0;
    const bool shot = run_is_shot_ || (given_away && end - begin > kGradualLag - kRamp);
    change.end = shot ? end : begin;
    // A plain picture that something enters is the beginning of the new shot.
    const bool ground = run_faded_in_ && !ramps_out && last_black_ < 0 && most_stays(end);
    change.begin = change.middle = ground ? begin : end;
    change.fade = run_faded_in_ || ramps_out;
    change.uniform = true;
    change.abrupt = run_cut_into_ && change.fade && change.end == begin;
    change.soft = !change.fade;
    change.resumes = run_resumes_;
    change.score = 1;
    found_.push_back(change);
  }
  ground_begin_ = begin;
  ground_end_ = end;
  run_begin_.reset();
  run_end_.reset();
  run_faded_in_ = run_is_shot_ = false;
  run_resumes_ = last_black_ = -1;
}

}  // namespace vfm::curate
