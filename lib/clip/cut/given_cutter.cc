// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/given_cutter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace vfm::clip {
namespace {

/// Tolerance in seconds, because lists round times to milliseconds. A frame that begins this little
/// before a span belongs to it. A frame that begins this little before the span's end does not.
constexpr double kRounding = 0.005;
/// Minimum gap between spans for a seek, in seconds. Shorter gaps are decoded.
constexpr double kWorthSeeking = 10;

}  // namespace

void GivenCutter::add_given(media::Frame&& frame) {
  curate::compute_features(tone_mapper_.map(frame), features_);
  Seen seen{std::move(frame), features_.picture, {}};
  const curate::MotionField still;
  // Motion from the previous clip into this clip does not count.
  const curate::MotionField& motion =
      clip_ ? estimator_.estimate(last_->picture, seen.picture) : still;
  seen.measures = curate::measure_frame(features_, motion, shown_aspect());
  add_to_clip(seen);
  last_ = std::move(seen);
}

void StrideCutter::cut() {
  // In ticks of the time base.
  const double stride = options_.recipe.stride / decoder_.info().time_base.value();
  std::int64_t number = 0;  // of the open stride
  media::Frame frame;
  while (output_.fits() && next(frame)) {
    take(frame);
    // Half a tick is added because a stride may not be a whole number of ticks.
    const auto here =
        static_cast<std::int64_t>((static_cast<double>(frame.pts - first_pts_) + 0.5) / stride);
    if (clip_ && here != number) turn({"stride", 0}, &frame);
    number = here;
    add_given(std::move(frame));
  }
  turn({"end", 0}, nullptr);
}

void SpanCutter::cut() {
  plan();
  while (output_.fits() && begin_pass()) {
    media::Frame frame;
    while (output_.fits() && pass_.at < pass_.end && decoder_.next(frame))
      cut_pieces(std::move(frame));
    end_pass();
  }
  // The video was not decoded completely, so its length is taken from the container.
  const double ticks = decoder_.info().duration / decoder_.info().time_base.value();
  end_pts_ = std::max(end_pts_, first_pts_ + static_cast<std::int64_t>(std::llround(ticks)));
}

void SpanCutter::plan() {
  media::Frame first;
  if (decoder_.next(first)) first_pts_ = first.pts;
  end_pts_ = first_pts_;
  pieces_ = plan_pieces(spans_, in_seconds(first_pts_), decoder_.info().frame_rate, errors_);
}

bool SpanCutter::begin_pass() {
  const std::size_t begin = pass_.end;
  if (begin == pieces_.size()) return false;
  pass_ = {begin, begin};
  while (pass_.end < pieces_.size() && pieces_[pass_.end].pass == pieces_[begin].pass)
    ++pass_.end;
  corrupt_before_ = corrupt();
  decoder_ = media::Decoder(path_, decode_);
  last_.reset();
  return true;
}

/// Ends the pieces that end before the frame, and adds the frame to its piece.
void SpanCutter::cut_pieces(media::Frame&& frame) {
  take(frame);
  auto& [at, end, found, length, here, number] = pass_;
  const bool by_frame = pieces_[at].by_frame;  // the same for all pieces of a pass
  length = by_frame ? 1 : in_seconds(frame.duration);
  here = by_frame ? static_cast<double>(number) : in_seconds(frame.pts);
  ++number;
  const double slack = by_frame ? 0.5 : std::min(length / 2, kRounding);
  for (; at < end && here >= pieces_[at].end - slack; ++at, found = false) {
    turn({"span", 0}, &frame);
    if (!found) errors_.push_back(pieces_[at].text() + " holds no frame");
  }
  if (at == end) return;
  const SpanPiece& piece = pieces_[at];
  if (here >= piece.begin - slack) {
    if (!found) begin_ = {"span", 0};
    found = true;
    given_ = piece.given;
    return add_given(std::move(frame));
  }
  if (!by_frame && piece.begin - here > kWorthSeeking)
    decoder_.seek(static_cast<std::int64_t>(
        std::floor((piece.begin - 1) / decoder_.info().time_base.value())));
  last_ = Seen{std::move(frame), {}, {}};
}

void SpanCutter::end_pass() {
  turn({"span", 0}, nullptr);
  const double last = pass_.here + pass_.length;
  for (; pass_.at < pass_.end; ++pass_.at, pass_.found = false) {
    const SpanPiece& piece = pieces_[pass_.at];
    if (!pass_.found)
      errors_.push_back(fmt::format("{} lies after the end of the video", piece.text()));
    else if (std::isfinite(piece.end) && piece.end > last + pass_.length + kRounding)
      errors_.push_back(
          fmt::format("{} ends after the video; the clip ends with it", piece.text()));
  }
}

}  // namespace vfm::clip
