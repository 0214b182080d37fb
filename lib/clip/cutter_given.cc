// Clips whose places are given: fixed strides, and spans from a file. Nothing is detected.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
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

/// A span in frames, or in seconds of the container's clock.
struct ClipCutter::Piece {
  double begin = 0, end = 0;
  bool by_frame = false;
  const GivenSpan* given = nullptr;
  int pass = 0;

  std::string text() const {
    const auto of = [&](double place) {
      return std::isinf(place) ? std::string("the end")
             : by_frame        ? fmt::format("frame {:.0f}", place)
                               : fmt::format("{:.3f} s", place);
    };
    return fmt::format("{}: the span from {} to {}", given->where, of(begin), of(end));
  }
};

/// Into the open clip, or into a new one.
void ClipCutter::add_given(Waiting& waiting, const Emit& emit, const Known& known) {
  const media::Frame& frame = waiting.frame;
  curate::compute_features(tone_mapper_.map(frame), features_);
  waiting.picture = features_.picture;
  const curate::MotionField still;
  // The motion into a clip's first frame is not the clip's.
  const curate::MotionField& motion =
      clip_ ? estimator_.estimate(last_->picture, waiting.picture) : still;
  waiting.measures = curate::measure_frame(features_, motion, shown_aspect());
  if (must_split(frame)) turn({"split", 0}, frame.index, frame, emit);
  if (!clip_)
    clip_ = std::make_unique<ClipEncoder>(recipe_, decoder_.info(), verify_,
                                          known ? known(frame.pts) : std::nullopt);
  clip_->add(frame, last_ ? &last_->frame : nullptr, waiting.picture, waiting.measures);
}

void ClipCutter::run_stride(const Emit& emit, const Known& known) {
  const double ticks = recipe_.stride / decoder_.info().time_base.value();
  Waiting waiting;
  std::int64_t number = 0;  // of the clip, from 0
  while (decoder_.next(waiting.frame)) {
    check_stop();
    if (picture_) waiting.frame = picture_->of(waiting.frame);
    const media::Frame& frame = waiting.frame;
    if (frames_++ == 0) first_pts_ = frame.pts;
    tell_place(frame);
    end_pts_ = frame.pts + frame.duration;
    // Half a tick: a stride need not be a whole number of them.
    const auto here =
        static_cast<std::int64_t>((static_cast<double>(frame.pts - first_pts_) + 0.5) / ticks);
    if (clip_ && here != number) turn({"stride", 0}, frame.index, frame, emit);
    number = here;
    add_given(waiting, emit, known);
    last_ = waiting;
  }
  if (clip_) close({"end", 0}, nullptr, emit);
}

/// The spans in frames or seconds, in order, each with the number of the pass over the video that
/// cuts it: spans that overlap are cut in different ones, so that memory holds one clip.
std::vector<ClipCutter::Piece> ClipCutter::pieces_of(const std::vector<GivenSpan>& spans) {
  const double first = static_cast<double>(first_pts_) * decoder_.info().time_base.value();
  const Rational rate = decoder_.info().frame_rate;
  std::vector<Piece> pieces;
  for (const GivenSpan& span : spans) {
    Piece piece{0, 0, span.begin.by_frame() || span.end.by_frame(), &span};
    if (span.begin.by_frame() != span.end.by_frame() && span.end.unit != SpanTime::Unit::open) {
      errors_.push_back(fmt::format("{}: one end is a time, the other one a frame", span.where));
      continue;
    }
    piece.begin = span.begin.place(first, rate);
    piece.end = span.end.place(first, rate);
    if (!(piece.begin < piece.end))
      errors_.push_back(piece.text() + " is empty");
    else
      pieces.push_back(piece);
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.by_frame, a.begin, a.end) < std::tie(b.by_frame, b.begin, b.end);
  });
  const auto same = [](const Piece& a, const Piece& b) {
    return a.by_frame == b.by_frame && a.begin == b.begin && a.end == b.end;
  };
  pieces.erase(std::unique(pieces.begin(), pieces.end(), same), pieces.end());
  std::vector<std::pair<bool, double>> ends;  // of the passes: by_frame, end
  for (Piece& piece : pieces) {
    const auto fits = [&](const auto& end) {
      return end.first == piece.by_frame && end.second <= piece.begin;
    };
    const auto found = std::find_if(ends.begin(), ends.end(), fits);
    piece.pass = static_cast<int>(found - ends.begin());
    if (found == ends.end())
      ends.emplace_back(piece.by_frame, piece.end);
    else
      found->second = piece.end;
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.pass < b.pass; });
  return pieces;
}

void ClipCutter::run_spans(const std::vector<GivenSpan>& spans, const Emit& emit,
                           const Known& known) {
  media::Frame first;
  if (decoder_.next(first)) first_pts_ = first.pts;
  end_pts_ = first_pts_;
  const std::vector<Piece> pieces = pieces_of(spans);
  for (std::size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
    while (end < pieces.size() && pieces[end].pass == pieces[begin].pass)
      ++end;
    corrupt_before_ = corrupt();
    decoder_ = media::Decoder(path_, decode_);
    last_.reset();
    run_pass(pieces, begin, end, emit, known);
  }
  given_ = nullptr;
  // Not all of the video was looked at: its length is the container's word.
  const double seconds = decoder_.info().duration;
  end_pts_ = std::max(end_pts_, first_pts_ + static_cast<std::int64_t>(std::llround(
                                                 seconds / decoder_.info().time_base.value())));
}

/// Cuts pieces [at, end), which follow each other.
void ClipCutter::run_pass(const std::vector<Piece>& pieces, std::size_t at, std::size_t end,
                          const Emit& emit, const Known& known) {
  const double base = decoder_.info().time_base.value();
  Waiting waiting;
  bool found = false;  // frames of the piece
  double length = 0, here = 0;
  std::int64_t number = 0;
  for (; at < end && decoder_.next(waiting.frame); ++number) {
    check_stop();
    if (picture_) waiting.frame = picture_->of(waiting.frame);
    const media::Frame& frame = waiting.frame;
    ++frames_;
    tell_place(frame);
    end_pts_ = std::max(end_pts_, frame.pts + frame.duration);
    length = pieces[at].by_frame ? 1 : static_cast<double>(frame.duration) * base;
    here =
        pieces[at].by_frame ? static_cast<double>(number) : static_cast<double>(frame.pts) * base;
    const double slack = pieces[at].by_frame ? 0.5 : std::min(length / 2, kRounding);
    for (; at < end && here >= pieces[at].end - slack; ++at, found = false) {
      if (clip_) close({"span", 0}, &frame, emit);
      if (!found) errors_.push_back(pieces[at].text() + " holds no frame");
    }
    if (at == end) break;
    if (here >= pieces[at].begin - slack) {
      if (!found) begin_ = {"span", 0};
      found = true;
      given_ = pieces[at].given;
      add_given(waiting, emit, known);
    } else if (!pieces[at].by_frame && pieces[at].begin - here > kWorthSeeking) {
      decoder_.seek(static_cast<std::int64_t>(std::floor((pieces[at].begin - 1) / base)));
    }
    last_ = waiting;
  }
  if (at == end) return;
  if (clip_) close({"span", 0}, nullptr, emit);
  const double last = here + length;
  for (; at < end; ++at, found = false) {
    if (!found)
      errors_.push_back(fmt::format("{} lies after the end of the video", pieces[at].text()));
    else if (std::isfinite(pieces[at].end) && pieces[at].end > last + length + kRounding)
      errors_.push_back(
          fmt::format("{} ends after the video; the clip ends with it", pieces[at].text()));
  }
}

}  // namespace vfm::clip
