// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/gradual.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vfm::curate {
namespace {

constexpr int kLengths[] = {2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64};  // windows, in frames

constexpr int kLongest = 64 + 8;  // frames from the first of a window on, in which it is found
constexpr float kUniform = 4;     // colour_deviation (grey levels) of a frame of one colour
// Of a dissolve; 1 is a clean one between still, unrelated shots.
constexpr float kLeastQuality = 0.30f;
constexpr float kMostRelated = 0.6f;  // correlation of the shots on either side
constexpr float kStructured = 6;      // root mean square of an end that a dissolve can have

/// The mixture of two pictures nearest to a third, by least squares.
struct Mixture {
  float a, b, left_over, energy;
};
Mixture fit(float aa, float bb, float ab, float pa, float pb, float pp) {
  const float determinant = std::max(aa * bb - ab * ab, 1e-6f * aa * bb);
  const float wa = (pa * bb - pb * ab) / determinant, wb = (pb * aa - pa * ab) / determinant;
  return {wa, wb, pp - wa * pa - wb * pb, pp};
}

/// Of blocks that move by more than half a cell, if these are more than one in eight.
MotionVector mean_of_moving(const MotionField& motion) {
  MotionVector sum;
  int moving = 0;
  for (const MotionVector& v : motion.vectors)
    if (std::abs(v.x) + std::abs(v.y) > 0.5f) sum.x += v.x, sum.y += v.y, ++moving;
  if (moving <= kBlocks) return {};
  const auto n = static_cast<float>(moving);
  return {sum.x / n, sum.y / n};
}

}  // namespace

void GradualDetector::push(const FrameFeatures& f, const MotionField& motion) {
  Tiny& tiny = at(frames_);
  static_cast<Relief&>(tiny) = relief_of(f.picture, f.area);
  tiny.area = f.area;
  tiny.residual = motion.residual;
  tiny.moved = mean_of_moving(motion);
  tiny.picture = f.picture;
  tiny.coarse = coarse_picture(f.picture);
  tiny.variance = f.whole_deviation * f.whole_deviation;
  const auto mean = [&](int from, int to) {
    int sum = 0;
    for (int i = from; i < to; ++i)
      sum += tiny.coarse[i];
    return static_cast<float>(sum) / static_cast<float>(to - from);
  };
  tiny.mean = {f.luma.mean, mean(256, 320), mean(320, 384)};
  tiny.uniform = std::min(f.deviation, f.whole_deviation) < kUniform;
  const std::int64_t now = frames_++;
  search_dissolves(now);
  follow_uniform_runs(now);
}

/// Mean absolute difference, luma plus chroma, in grey levels a cell.
float GradualDetector::change(const Tiny& a, const Tiny& b) {
  float luma = 0, chroma = 0;
  for (int i = 0; i < 256; ++i)
    luma += std::abs(a.cells[i] - b.cells[i]);
  for (int i = 256; i < kCells; ++i)
    chroma += std::abs(a.cells[i] - b.cells[i]);
  return luma / 256 + chroma / 128;
}

/// Whether motion from frame to frame explains how the picture at a became the one at b.
bool GradualDetector::moves(std::int64_t a, std::int64_t b) const {
  float residual = 0;
  for (std::int64_t i = a + 1; i <= b; ++i)
    residual += at(i).residual;
  return residual < 0.8f * change(at(a), at(b));
}

/// Share of the cells of luma that are another at b than at a.
float GradualDetector::share_changed(std::int64_t a, std::int64_t b) const {
  constexpr int kSame = 8;  // grey levels
  const auto &first = at(a).picture.y, &last = at(b).picture.y;
  int changed = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    changed += std::abs(int{first[i]} - int{last[i]}) > kSame;
  return static_cast<float>(changed) / kLumaCells;
}

/// Whether something comes into the view of a plain sky or wall, or leaves it, between a and b:
/// motion explains much of the change (in a fade, where all cells change in each frame, the
/// residuals are together well above the change), and a part of the picture stays as it is.
bool GradualDetector::enters(std::int64_t a, std::int64_t b) const {
  constexpr float kExplained = 1.15f;
  const float whole = change(at(a), at(b));
  float residual = 0;
  for (std::int64_t i = a + 1; i <= b; ++i) {
    residual += at(i).residual;
    if (change(at(i - 1), at(i)) > 0.5f * whole) return false;  // a cut
  }
  if (residual >= kExplained * whole) return false;
  return share_changed(a, b) < 0.75f;
}

/// Of the cells that differ between a and b, the share that stands at about `alpha` of the way in
/// the frame `middle`: nearly all in a mixture; few where things move or one picture wipes over the
/// other, as each cell then shows either.
float GradualDetector::between(std::int64_t a, std::int64_t middle, std::int64_t b,
                               float alpha) const {
  int changed = 0, halfway = 0;
  const auto count = [&](const auto& first, const auto& now, const auto& last, int least) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      const int way = int{last[i]} - int{first[i]};
      if (std::abs(way) < least) continue;
      const float gone = static_cast<float>(int{now[i]} - int{first[i]}) / static_cast<float>(way);
      ++changed;
      halfway += std::abs(gone - alpha) <= 0.3f;
    }
  };
  const SmallPicture &p = at(a).picture, &q = at(middle).picture, &r = at(b).picture;
  count(p.y, q.y, r.y, 24);
  count(p.u, q.u, r.u, 16);
  count(p.v, q.v, r.v, 16);
  // Where little changes, a small thing moves.
  const int least = (kLumaCells + 2 * kChromaCells) / 16;
  return changed > least ? static_cast<float>(halfway) / static_cast<float>(changed) : 0;
}

/// Outside the window the pictures must go on as its ends, or the change is part of something
/// longer.
bool GradualDetector::ends_hold(std::int64_t a, std::int64_t b) const {
  const Tiny &first = at(a), &last = at(b);
  const Tiny& after = at(std::min(b + kAfter, frames_ - 1));
  if (correlation(after, last) < 0.5f || correlation(after, first) > correlation(after, last))
    return false;
  const std::int64_t earlier = std::max<std::int64_t>(0, a - kAfter);
  const Tiny& before = at(earlier);
  return correlation(before, first) > 0.5f &&
         correlation(before, first) > correlation(before, last);
}

std::optional<GradualDetector::Candidate> GradualDetector::judge_window(std::int64_t a,
                                                                        std::int64_t b) const {
  // Bars that only one of the shots has are a part of the picture.
  const ActiveArea area = join(at(a).area, at(b).area);
  Relief scratch[3];
  const Relief &first = within(area, a, scratch[0]), &last = within(area, b, scratch[1]);
  const float aa = first.energy, bb = last.energy, ab = dot(first, last);
  const auto mixture = [&](std::int64_t i) {
    const Relief& p = within(area, i, scratch[2]);
    return fit(aa, bb, ab, dot(p, first), dot(p, last), p.energy);
  };
  constexpr float kLeast = kStructured * kStructured * kCells;
  if (aa < kLeast || bb < kLeast) return std::nullopt;
  const float related = ab / std::sqrt(aa * bb);
  const int length = static_cast<int>(b - a);
  const bool soft = length <= 3;
  if (soft && related > 0.4f) return std::nullopt;
  const int samples = std::min(length - 1, 9);
  const float apart = aa + bb - 2 * ab;
  float left_over = 0, energy = 0, dip = 0, dip_expected = 0, bend = 0, least_sum = 1;
  float alpha_before = 0;
  for (int i = 1; i <= samples; ++i) {
    const std::int64_t frame =
        a + (static_cast<std::int64_t>(length) * i + samples / 2) / (samples + 1);
    const float x = static_cast<float>(frame - a) / static_cast<float>(length);
    if (at(frame).uniform) return std::nullopt;  // follow_uniform_runs knows better
    const Mixture w = mixture(frame);
    const float sum = w.a + w.b;
    if (w.a < -0.15f || w.b < -0.15f || sum > 1.25f) return std::nullopt;
    least_sum = std::min(least_sum, sum);
    const float alpha = sum > 0.1f ? std::clamp(w.b / sum, 0.f, 1.f) : x;
    if (alpha < alpha_before - 0.08f) return std::nullopt;
    alpha_before = alpha;
    bend = std::max(bend, std::abs(alpha - x));
    left_over += std::max(w.left_over, 0.f);
    energy += w.energy;
    dip += (1 - x) * aa + x * bb - w.energy;
    dip_expected += x * (1 - x) * apart;
  }
  const float explained = 1 - left_over / std::max(energy, 1e-3f);
  const float dipped = dip / dip_expected;
  const bool empties = least_sum < 0.35f;  // neither shot is to be seen in the middle
  if (bend > (soft ? 0.35f : 0.25f) || explained < (soft ? 0.8f : 0.5f) || dipped < 0.55f ||
      (empties && dipped < 1.35f))
    return std::nullopt;
  float quality =
      (1 - std::max(related, 0.f)) * explained * std::min(dipped, 1.f) * (1 - 1.5f * bend);
  const float least = kLeastQuality * strictness_;
  if (quality < least || !ends_hold(a, b) || moves(a, b)) return std::nullopt;
  const std::int64_t middle = (a + b) / 2;
  const Mixture w = mixture(middle);
  const float mixed =
      between(a, middle, b, std::clamp(w.b / std::max(w.a + w.b, 0.1f), 0.2f, 0.8f));
  quality *= std::min(1.f, mixed / 0.8f);
  if (quality < least || mixed < 0.4f) return std::nullopt;
  Candidate c{a, b, quality, {}};
  c.change.fade = empties;
  c.change.soft = soft;
  c.change.score = c.quality;
  c.change.end = a + 1;
  c.change.begin = b;
  c.change.middle = b;
  for (std::int64_t frame = b - 1; frame > a; --frame) {
    const Mixture v = mixture(frame);
    if (v.b >= v.a)
      c.change.middle = frame;
    else
      break;
  }
  return c;
}

/// An edge that goes evenly over the picture between a and b, seen in five frames, the middle one
/// first: few windows get further. Motion seems to explain a wipe over something plain, too, as all
/// of it is alike; but what moves or turns has no clean edge.
std::optional<GradualDetector::Candidate> GradualDetector::judge_wipe(std::int64_t a,
                                                                      std::int64_t b) const {
  constexpr int kShortest = 6;
  constexpr float kClear = 0.6f, kAgree = 0.8f, kLeast = 0.8f, kChanged = 0.6f;
  constexpr float kVotes = 0.6f;   // four of five cells
  constexpr float kClean = 0.97f;  // of made gradients that turn at most 0.95
  if (b - a < kShortest) return std::nullopt;
  const Tiny &first = at(a), &last = at(b);
  if (first.uniform || last.uniform) return std::nullopt;
  std::optional<WipeWay> way;
  float quality = 0;
  constexpr int kSamples[] = {3, 2, 4, 1, 5};  // sixths of the window
  for (const int sixth : kSamples) {
    const std::int64_t frame = a + ((b - a) * sixth + 3) / 6;
    const float share = static_cast<float>(frame - a) / static_cast<float>(b - a);
    const WipeFrame now = wipe_frame(first.coarse, at(frame).coarse, last.coarse);
    if (now.clearness < kClear || now.changed < kChanged) return std::nullopt;
    if (!way) way = wipe_edge(now, share).way;
    const float agreement = wipe_agreement(now, *way, share);
    if (agreement < kAgree || wipe_votes(now, *way, share) < kVotes) return std::nullopt;
    quality += 0.2f * agreement * std::min(1.f, 1.3f * now.clearness);
  }
  if ((1 - quality) * strictness_ > 1 - kLeast || !ends_hold(a, b) ||
      (quality < kClean && moves(a, b)) ||
      wipe_is_pan(first.coarse, at((a + b) / 2).coarse, last.coarse, *way, 0.5f))
    return std::nullopt;
  Candidate c{a, b, quality, {}};
  c.change.wipe = true;
  c.change.score = quality;
  c.change.end = a + 1;
  c.change.begin = b;
  c.change.middle = (a + b + 1) / 2;
  return c;
}

/// A share of the new picture that grows evenly mixes the means evenly, and variances by the
/// squares of their shares, as unrelated pictures have no covariance. Outside the window both must
/// rest.
std::optional<GradualDetector::Candidate> GradualDetector::judge_statistics(std::int64_t a,
                                                                            std::int64_t b) const {
  constexpr int kShortest = 4;
  constexpr float kLeastVariance = 36, kMostVariance = 400, kOff = 0.25f, kRest = 0.1f;
  const std::int64_t before = a - kAfter, after = std::min(b + kAfter, frames_ - 1);
  if (b - a < kShortest || before < 0) return std::nullopt;
  const Tiny &first = at(a), &last = at(b);
  const float va = first.variance, vb = last.variance;
  if (std::min(va, vb) < kLeastVariance || std::max(va, vb) < kMostVariance) return std::nullopt;
  const auto apart = [](const std::array<float, 3>& p, const std::array<float, 3>& q) {
    return std::abs(p[0] - q[0]) + std::abs(p[1] - q[1]) + std::abs(p[2] - q[2]);
  };
  const float way = apart(first.mean, last.mean);
  if (std::abs(at(before).variance - va) > kRest * va ||
      std::abs(at(after).variance - vb) > kRest * vb ||
      apart(at(before).mean, first.mean) > kRest * way + 1 ||
      apart(at(after).mean, last.mean) > kRest * way + 1)
    return std::nullopt;
  float off = 0, dip = 0, mean_off = 0;
  for (int i = 1; i <= 7; ++i) {
    const std::int64_t frame = a + ((b - a) * i + 4) / 8;
    const float x = static_cast<float>(frame - a) / static_cast<float>(b - a), y = 1 - x;
    const Tiny& p = at(frame);
    const float mixed = y * y * va + x * x * vb;
    off += std::abs(p.variance - mixed);
    dip += y * va + x * vb - mixed;
    std::array<float, 3> expected{};
    for (int k = 0; k < 3; ++k)
      expected[k] = y * first.mean[k] + x * last.mean[k];
    mean_off += apart(p.mean, expected) / 7;
  }
  const float misfit = off / dip;
  if (misfit > std::min(kOff / strictness_, 1.f) || mean_off > 0.1f * way + 1.5f)
    return std::nullopt;
  // From frame to frame no more may change than does in the shots, and by mixing them: a camera
  // that swings and rests again changes all in between.
  const auto step = [&](std::int64_t i) { return change(at(i - 1), at(i)); };
  float rest = 0, steps = 0;
  for (std::int64_t i = before + 1; i <= a; ++i)
    rest = std::max(rest, step(i));
  for (std::int64_t i = b + 1; i <= after; ++i)
    rest = std::max(rest, step(i));
  for (std::int64_t i = a + 1; i <= b; ++i)
    steps += step(i);
  const float length = static_cast<float>(b - a);
  if (steps > 1.5f * length * rest + 2.5f * change(first, last) || moves(a, b)) return std::nullopt;
  Candidate c{a, b, 1 - misfit, {}};
  c.change.score = c.quality;
  c.change.end = a + 1;
  c.change.begin = b;
  c.change.middle = (a + b + 1) / 2;
  return c;
}

/// Whether windows that end later read best_ no better.
bool GradualDetector::best_is_over(std::int64_t b) const {
  return best_ && b > best_->b + 8 + (best_->b - best_->a) / 8;
}

/// The first part of a long transition, or of a wipe, looks like a transition of its own: such a
/// one waits for something better that begins where it does.
void GradualDetector::search_dissolves(std::int64_t now) {
  const std::int64_t b = now - kAfter;
  for (const int length : kLengths) {
    const std::int64_t a = b - length;
    if (a < 0) break;
    if (correlation(at(a), at(b)) > kMostRelated) continue;
    std::optional<Candidate> c = judge_window(a, b);
    if (!c) c = judge_wipe(a, b);
    if (!c) c = judge_statistics(a, b);
    if (!c) c = judge_transition(a, b);
    if (!c) continue;
    // Two transitions with a plain ground between them are not one through that ground.
    const bool other =
        best_is_over(b) && !best_->closes && (c->through || c->a > best_->a + kAfter);
    if (other && c->change.transition && c->a < best_->b) continue;
    const bool behind = best_ && (other || c->a >= best_->b);
    if (best_ && !behind && c->quality <= best_->quality) continue;
    if (leaps(a, b) || (!c->no_camera && camera_passes(a, b))) continue;
    if (behind) keep_best();
    best_ = c;
  }
  if (best_is_over(b) && (!best_->change.transition || b >= best_->a + kLongest)) keep_best();
}

void GradualDetector::keep_best() {
  found_.push_back(best_->change);
  best_end_ = best_->b;
  best_.reset();
}

void GradualDetector::finish() {
  if (best_) keep_best();
  if (run_end_) close_run(*run_end_, frames_ - 1);
}

std::vector<GradualChange> GradualDetector::take() {
  return std::exchange(found_, {});
}

std::optional<std::int64_t> GradualDetector::open_fade() const {
  if (run_begin_ && !run_end_ && run_faded_in_ && run_resumes_ < 0) return run_begin_;
  return std::nullopt;
}

}  // namespace vfm::curate
