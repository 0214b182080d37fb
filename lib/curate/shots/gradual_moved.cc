// How GradualDetector finds transitions in which a picture moves (moved_picture.h).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "curate/shots/gradual.h"
#include "curate/shots/moved_picture.h"
#include "curate/shots/parts_between.h"

namespace vfm::curate {
namespace {

constexpr int kSixths = 6;
constexpr float kExact = 0.025f;  // largest error of a share in an even movement
constexpr std::size_t kPush = static_cast<std::size_t>(Move::push);
constexpr std::size_t kSqueeze = static_cast<std::size_t>(Move::squeeze);

/// The share as a straight line over the frames.
struct Pace {
  float start = 0, slope = 0;
  float bend = 0;  ///< Largest distance of a share from the line.
};
Pace pace_of(std::span<const float> frames, std::span<const float> shares) {
  const auto count = static_cast<float>(frames.size());
  float sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < frames.size(); ++i)
    sx += frames[i], sy += shares[i], sxx += frames[i] * frames[i], sxy += frames[i] * shares[i];
  Pace pace;
  pace.slope = (count * sxy - sx * sy) / (count * sxx - sx * sx);
  pace.start = (sy - pace.slope * sx) / count;
  for (std::size_t i = 0; i < frames.size(); ++i)
    pace.bend = std::max(pace.bend, std::abs(pace.start + pace.slope * frames[i] - shares[i]));
  return pace;
}

/// Leaves out a first or last frame in which the movement may rest, because the nearest share is
/// then not 0 or 1, but that of a line or two.
Pace pace_underway(std::span<const float> frames, std::span<const float> shares) {
  constexpr float kRest = 2.5f / kChromaSide;
  std::size_t first = 0, count = frames.size();
  if (shares.front() < kRest) ++first, --count;
  if (shares.back() > 1 - kRest) --count;
  return pace_of(frames.subspan(first, count), shares.subspan(first, count));
}

/// Returns true for a transition, and false for a camera. If a camera swings by a whole picture,
/// the lines that meet at the seam are alike.
bool fits(std::size_t move, float misfit, float as_push, float bend, float seam) {
  if (move == kSqueeze) return misfit < (bend < kExact ? 0.25f : 0.15f) && bend < 0.08f;
  if (move != kPush) return misfit < 0.15f && bend < 0.06f && as_push > 2 * misfit;
  return bend < kExact ? (misfit < 0.2f && seam > 0.6f) || (misfit < 0.3f && seam > 0.85f)
                       : misfit < 0.15f && bend < 0.1f && seam > 0.65f;
}

}  // namespace

/// Returns the motion from a to b if it is long and nearly rests before and after, or 0.
MotionVector GradualDetector::passes(std::int64_t a, std::int64_t b) const {
  constexpr float kFar = 24, kMuch = 0.5f;  // cells; share of the speed from a to b
  const auto sum = [&](std::int64_t from, std::int64_t to) {
    MotionVector all;
    for (std::int64_t i = from + 1; i <= to; ++i)
      all.x += at(i).moved.x, all.y += at(i).moved.y;
    return all;
  };
  const MotionVector way = sum(a, b);
  if (std::max(std::abs(way.x), std::abs(way.y)) < kFar) return {};
  const bool sideways = std::abs(way.x) > std::abs(way.y);
  const auto along = [&](const MotionVector& v) { return std::abs(sideways ? v.x : v.y); };
  const float most = kMuch * kAfter / static_cast<float>(b - a) * along(way);
  const bool rests =
      along(sum(a - kAfter, a)) < most && along(sum(b, std::min(b + kAfter, frames_ - 1))) < most;
  return rests ? way : MotionVector{};
}

std::optional<GradualDetector::Candidate> GradualDetector::judge_moved(std::int64_t a,
                                                                       std::int64_t b) const {
  const MotionVector way = passes(a, b);
  if (way.x != 0 || way.y != 0) {
    // A camera that turns to or from a plain sky looks like this.
    if (std::min(at(a).energy, at(b).energy) < kPlain) return std::nullopt;
    return judge_lines(a, b, std::abs(way.y) > std::abs(way.x), false);
  }
  // A squeezed picture moves to the middle from both sides, so the mean motion is 0.
  constexpr float kLeast = 0.005f, kMost = 0.2f, kHalf = 0.25f;
  const PartsBetween half = parts_between(at(a).coarse, at((a + b) / 2).coarse, at(b).coarse);
  if (half.misfit < kLeast || half.misfit > kMost || std::abs(half.progress - 0.5f) > kHalf)
    return std::nullopt;
  std::optional<Candidate> c = judge_lines(a, b, false, true);
  return c ? c : judge_lines(a, b, true, true);
}

/// Tests whether the rows or columns of five frames fit a movement from a to b that only goes
/// forwards. The middle frame is first, because most windows fail there.
std::optional<GradualDetector::Candidate> GradualDetector::judge_lines(std::int64_t a,
                                                                       std::int64_t b, bool rows,
                                                                       bool squeeze) const {
  constexpr float kAnyMisfit = 0.4f, kAway = 0.2f;
  constexpr int kMiddle = kSixths / 2;
  const auto lines = [&](std::int64_t i) {
    return rows ? rows_of(at(i).picture) : columns_of(at(i).picture);
  };
  const PictureLines first = lines(a), last = lines(b);
  std::array<float, kSixths> frames{}, shares{};
  std::array<std::array<MovedFit, kMoves>, kSixths> seen;
  std::array<float, kMoves> misfits{};
  for (const int i : {kMiddle, 1, 2, 4, 5}) {
    const std::int64_t away = ((b - a) * i + kSixths / 2) / kSixths;
    frames[i] = static_cast<float>(away);
    seen[i] = moved_fits(first, lines(a + away), last);
    for (std::size_t m = 0; m < kMoves; ++m)
      misfits[m] += seen[i][m].misfit / (kSixths - 1);
    const auto near = [&](const MovedFit& f) {
      return f.misfit < kAnyMisfit && std::abs(f.share - 0.5f) < kAway;
    };
    if (i == kMiddle && std::none_of(seen[i].begin(), seen[i].end(), near)) return std::nullopt;
  }
  const std::size_t move =
      squeeze
          ? kSqueeze
          : static_cast<std::size_t>(std::min_element(misfits.begin(), misfits.begin() + kSqueeze) -
                                     misfits.begin());
  const int way = seen[kMiddle][move].way;
  for (int i = 1; i < kSixths; ++i) {
    shares[i] = seen[i][move].share;
    if (seen[i][move].way != way || shares[i] <= shares[i - 1]) return std::nullopt;
  }
  const auto seen_frames = std::span<const float>(frames).subspan(1);
  const auto seen_shares = std::span<const float>(shares).subspan(1);
  Pace pace = pace_of(seen_frames, seen_shares);
  const float bend = pace.bend;
  const int near = bend < kExact ? 2 : 6;
  const float seam = move == kPush ? seam_of(first, last, way, near) : 1;
  const float misfit = misfits[move];
  if (!fits(move, strictness_ * misfit, strictness_ * misfits[kPush], bend, seam))
    return std::nullopt;
  if (bend >= kExact) pace = pace_underway(seen_frames, seen_shares);
  Candidate c{a + std::lround(-pace.start / pace.slope),
              a + std::lround((1 - pace.start) / pace.slope),
              0,
              {}};
  c.quality = quality_of(misfit, c.b - c.a);
  if (c.a < std::max<std::int64_t>(0, a - 2 * kAfter) || c.b > frames_ - 1) return std::nullopt;
  c.change.middle = (c.a + c.b + 1) / 2;
  c.no_camera = move == kPush && bend < kExact;
  return c;
}

}  // namespace vfm::curate
