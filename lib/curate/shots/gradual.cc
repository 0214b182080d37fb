// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/gradual.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vfm::curate {
namespace {

constexpr int kLengths[] = {2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64};  // lengths of windows

constexpr int kLongest = 64 + 8;  // longest wait for a better transition, in frames
constexpr float kUniform = 4;     // largest colour_deviation() of a frame of one colour
// A clean dissolve between still, unrelated shots has quality 1.
constexpr float kLeastQuality = 0.30f;
constexpr float kMostRelated = 0.6f;  // largest correlation of the two shots
constexpr float kStructured = 6;      // minimum root mean square of the shots of a dissolve

/// The mixture of two pictures that is nearest to a third picture, by least squares.
struct Mixture {
  float a, b, left_over, energy;
};
Mixture fit(float aa, float bb, float ab, float pa, float pb, float pp) {
  const float determinant = std::max(aa * bb - ab * ab, 1e-6f * aa * bb);
  const float wa = (pa * bb - pb * ab) / determinant, wb = (pb * aa - pa * ab) / determinant;
  return {wa, wb, pp - wa * pa - wb * pb, pp};
}

/// Returns the mean vector of the blocks that move, or 0 if at most an eighth of them move.
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

/// Returns the mean absolute difference, luma plus chroma, in grey levels per cell.
float GradualDetector::change(const Tiny& a, const Tiny& b) {
  float luma = 0, chroma = 0;
  for (int i = 0; i < 256; ++i)
    luma += std::abs(a.cells[i] - b.cells[i]);
  for (int i = 256; i < kCells; ++i)
    chroma += std::abs(a.cells[i] - b.cells[i]);
  return luma / 256 + chroma / 128;
}

/// Returns true if motion from frame to frame explains the change from a to b.
bool GradualDetector::moves(std::int64_t a, std::int64_t b) const {
  float residual = 0;
  for (std::int64_t i = a + 1; i <= b; ++i)
    residual += at(i).residual;
  return residual < 0.8f * change(at(a), at(b));
}

float GradualDetector::share_changed(std::int64_t a, std::int64_t b) const {
  constexpr int kSame = 8;  // grey levels
  const auto &first = at(a).picture.y, &last = at(b).picture.y;
  int changed = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    changed += std::abs(int{first[i]} - int{last[i]}) > kSame;
  return static_cast<float>(changed) / kLumaCells;
}

/// Returns true if something enters or leaves the view of a plain sky or wall between a and b.
/// Motion then explains much of the change, and a part of the picture does not change. In a fade,
/// all cells change in each frame, and the sum of the residuals is well above the change.
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

/// Returns the share of the changed cells that are at about `alpha` of the way from a to b in frame
/// `middle`: nearly all cells in a mixture, but few if things move or an edge passes, because each
/// cell then shows one of the pictures.
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
  // If few cells change, a small thing moves.
  const int least = (kLumaCells + 2 * kChromaCells) / 16;
  return changed > least ? static_cast<float>(halfway) / static_cast<float>(changed) : 0;
}

/// Returns false if the change goes on outside the window, as a part of a longer change.
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
  // Bars of only one shot are part of the picture.
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
    if (at(frame).uniform) return std::nullopt;  // left to follow_uniform_runs()
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
  const bool empties = least_sum < 0.35f;  // neither shot is visible in the middle
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

/// Looks for an edge that crosses the picture evenly, in five frames. The middle frame is first,
/// because most windows fail there. Motion also seems to explain a wipe over a plain picture, so a
/// clean edge, which moving things do not have, is enough.
std::optional<GradualDetector::Candidate> GradualDetector::judge_wipe(std::int64_t a,
                                                                      std::int64_t b) const {
  constexpr int kShortest = 6;
  constexpr float kClear = 0.6f, kAgree = 0.8f, kLeast = 0.8f, kChanged = 0.6f;
  constexpr float kVotes = 0.6f;   // four of five cells
  constexpr float kClean = 0.97f;  // generated gradients that turn have at most 0.95
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

/// In an even dissolve of unrelated pictures, the means mix by the shares of the pictures, and the
/// variances by the squares of the shares. Outside the window, means and variances must rest.
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
  // The steps may be as large as in the shots, plus the mixing. If a camera swings between two
  // rests, the steps are larger.
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

/// Returns true if no later window can fit the change of best_ better.
bool GradualDetector::best_is_over(std::int64_t b) const {
  return best_ && b > best_->b + 8 + (best_->b - best_->a) / 8;
}

/// The first part of a long transition or wipe looks like a transition of its own, so a candidate
/// waits for a better candidate with the same beginning.
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
    // Two transitions with a plain picture between them are not one transition through it.
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
