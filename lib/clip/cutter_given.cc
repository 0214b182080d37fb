// Clips whose places are given: fixed strides, and spans from a file. Nothing is detected.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/stop.h"
#include "clip/cutter.h"

namespace vfm::clip {
namespace {

/// Times in lists are rounded to milliseconds: a frame that begins this little before a span is its
/// first, and one that begins this little before its end is the next one's. Seconds.
constexpr double kRounding = 0.005;
/// Gaps worth a seek: shorter ones are decoded through. Seconds.
constexpr double kWorthSeeking = 10;

}  // namespace

/// Into the open clip, or into a new one.
void ClipCutter::add_given(Waiting& waiting) {
  const media::Frame& frame = waiting.frame;
  curate::compute_features(tone_mapper_.map(frame), features_);
  waiting.picture = features_.picture;
  const curate::MotionField still;
  // The motion into a clip's first frame is not the clip's.
  const curate::MotionField& motion =
      clip_ ? estimator_.estimate(last_->picture, waiting.picture) : still;
  waiting.measures = curate::measure_frame(features_, motion, shown_aspect());
  if (must_split(frame)) turn({"split", 0}, frame.index, frame);
  add_to_clip(waiting);
}

/// Cuts at one more frame. False at the end.
bool ClipCutter::step_stride() {
  Waiting waiting;
  if (!decoder_.next(waiting.frame)) {
    if (clip_) close({"end", 0}, nullptr);
    return false;
  }
  check_stop();
  if (picture_) waiting.frame = picture_->of(waiting.frame);
  const media::Frame& frame = waiting.frame;
  if (frames_++ == 0) first_pts_ = frame.pts;
  report_place(frame);
  end_pts_ = frame.pts + frame.duration;
  const double ticks = recipe_.stride / decoder_.info().time_base.value();
  // Half a tick: a stride need not be a whole number of them.
  const auto here =
      static_cast<std::int64_t>((static_cast<double>(frame.pts - first_pts_) + 0.5) / ticks);
  if (clip_ && here != stride_) turn({"stride", 0}, frame.index, frame);
  stride_ = here;
  add_given(waiting);
  last_ = std::move(waiting);
  return true;
}

/// Cuts at one more frame of the pass that is on, or ends it. False at the end of the last one.
bool ClipCutter::step_spans() {
  if (!pieces_) plan_spans();
  if (pass_.at == pass_.end && !begin_pass()) {
    given_ = nullptr;
    // Not all of the video was looked at: its length is the container's word.
    const double seconds = decoder_.info().duration;
    end_pts_ = std::max(end_pts_, first_pts_ + static_cast<std::int64_t>(std::llround(
                                                   seconds / decoder_.info().time_base.value())));
    return false;
  }
  Waiting waiting;
  if (decoder_.next(waiting.frame))
    cut_pieces(std::move(waiting));
  else
    end_pass();
  return true;
}

void ClipCutter::plan_spans() {
  media::Frame first;
  if (decoder_.next(first)) first_pts_ = first.pts;
  end_pts_ = first_pts_;
  pieces_ =
      plan_pieces(*spans_, static_cast<double>(first_pts_) * decoder_.info().time_base.value(),
                  decoder_.info().frame_rate, errors_);
}

/// Goes to the next pass; false if there is none.
bool ClipCutter::begin_pass() {
  const std::vector<SpanPiece>& pieces = *pieces_;
  const std::size_t begin = pass_.end;
  if (begin == pieces.size()) return false;
  pass_ = {begin, begin};
  while (pass_.end < pieces.size() && pieces[pass_.end].pass == pieces[begin].pass)
    ++pass_.end;
  corrupt_before_ = corrupt();
  decoder_ = media::Decoder(path_, decode_);
  last_.reset();
  return true;
}

/// Ends the pieces that end before this frame, and puts it into the one that it belongs to.
void ClipCutter::cut_pieces(Waiting&& waiting) {
  check_stop();
  if (picture_) waiting.frame = picture_->of(waiting.frame);
  const media::Frame& frame = waiting.frame;
  ++frames_;
  report_place(frame);
  end_pts_ = std::max(end_pts_, frame.pts + frame.duration);
  const std::vector<SpanPiece>& pieces = *pieces_;
  auto& [at, end, found, length, here, number] = pass_;
  const bool by_frame = pieces[at].by_frame;  // all of a pass
  const double base = decoder_.info().time_base.value();
  length = by_frame ? 1 : static_cast<double>(frame.duration) * base;
  here = by_frame ? static_cast<double>(number) : static_cast<double>(frame.pts) * base;
  ++number;
  const double slack = by_frame ? 0.5 : std::min(length / 2, kRounding);
  for (; at < end && here >= pieces[at].end - slack; ++at, found = false) {
    if (clip_) close({"span", 0}, &frame);
    if (!found) errors_.push_back(pieces[at].text() + " holds no frame");
  }
  if (at == end) return;
  if (here >= pieces[at].begin - slack) {
    if (!found) begin_ = {"span", 0};
    found = true;
    given_ = pieces[at].given;
    add_given(waiting);
  } else if (!by_frame && pieces[at].begin - here > kWorthSeeking) {
    decoder_.seek(static_cast<std::int64_t>(std::floor((pieces[at].begin - 1) / base)));
  }
  last_ = std::move(waiting);
}

/// The video ends before the pieces do.
void ClipCutter::end_pass() {
  const std::vector<SpanPiece>& pieces = *pieces_;
  if (clip_) close({"span", 0}, nullptr);
  const double last = pass_.here + pass_.length;
  for (; pass_.at < pass_.end; ++pass_.at, pass_.found = false) {
    const SpanPiece& piece = pieces[pass_.at];
    if (!pass_.found)
      errors_.push_back(fmt::format("{} lies after the end of the video", piece.text()));
    else if (std::isfinite(piece.end) && piece.end > last + pass_.length + kRounding)
      errors_.push_back(
          fmt::format("{} ends after the video; the clip ends with it", piece.text()));
  }
}

}  // namespace vfm::clip
