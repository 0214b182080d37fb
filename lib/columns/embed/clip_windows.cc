// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/clip_windows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/json.h"
#include "base/rounding.h"
#include "columns/clip_frames.h"
#include "media/colour/scaler.h"

namespace vfm::columns {
namespace {

class ClipWindowTaker final : public FrameTaker {
 public:
  ClipWindowTaker(const models::PictureEncoder& encoder, int count, double seconds,
                  ClipVectors& vectors)
      : encoder_(encoder), count_(count), seconds_(seconds), vectors_(vectors) {}

  std::int64_t begin(std::int64_t frames, double fps) override {
    frames_ = frames;
    windows_ = count_clip_windows(frames, fps, seconds_);
    of_clip_ = plan_clip_frames(frames, count_);
    of_windows_ = plan_window_frames(frames, windows_, count_);
    next_in_clip_ = next_in_windows_ = 0;
    begins_.clear();
    vectors_.begin(of_clip_.size(), static_cast<std::size_t>(windows_));
    return std::max(of_clip_.back(), of_windows_.back().number);
  }

  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    if (number == 0) first_ = frame.pts;
    const auto begun = static_cast<std::int64_t>(begins_.size());
    if (begun < windows_ && number == part_begin(frames_, windows_, begun))
      begins_.push_back(
          six_digits(static_cast<double>(frame.pts - first_) * info.time_base.value()));
    const bool of_clip = next_in_clip_ < of_clip_.size() && of_clip_[next_in_clip_] == number;
    std::optional<std::size_t> window;
    if (next_in_windows_ < of_windows_.size() && of_windows_[next_in_windows_].number == number)
      window = static_cast<std::size_t>(of_windows_[next_in_windows_++].window);
    if (of_clip) ++next_in_clip_;
    if (!of_clip && !window) return;
    scaler_.to_rgb(frame, as_shown(info), image_);
    vectors_.add(encoder_.prepare({image_.width, image_.height, image_.pixels}), of_clip, window);
  }

  void give_up() override {
    begins_.clear();
    vectors_.begin(0, 0);
  }

  std::vector<double> begins() { return std::move(begins_); }

 private:
  const models::PictureEncoder& encoder_;
  const int count_;
  const double seconds_;
  ClipVectors& vectors_;
  std::int64_t frames_ = 0, windows_ = 0, first_ = 0;
  std::vector<std::int64_t> of_clip_;
  std::vector<WindowFrame> of_windows_;
  std::size_t next_in_clip_ = 0, next_in_windows_ = 0;
  std::vector<double> begins_;
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

std::int64_t count_clip_windows(std::int64_t frames, double fps, double seconds) {
  // Half a frame is subtracted, so that rounding errors add no window.
  const double windows = std::ceil((static_cast<double>(frames) - 0.5) / (fps * seconds));
  const std::int64_t most = std::min(frames, kMostClipWindows);
  return windows < static_cast<double>(most) ? std::max<std::int64_t>(1, std::llround(windows))
                                             : most;
}

std::vector<WindowFrame> plan_window_frames(std::int64_t frames, std::int64_t windows, int count) {
  std::vector<WindowFrame> plan;
  for (std::int64_t window = 0; window < windows; ++window) {
    const std::int64_t begin = part_begin(frames, windows, window),
                       end = part_begin(frames, windows, window + 1);
    for (const std::int64_t number : plan_clip_frames(end - begin, count))
      plan.push_back({begin + number, window});
  }
  return plan;
}

WindowedClip take_clip_windows(const shard::Member& member, const std::string& where,
                               const Json& known, const models::PictureEncoder& encoder, int count,
                               double seconds, const media::HardwareDecoder* hardware,
                               ClipVectors& vectors) {
  ClipWindowTaker taker(encoder, count, seconds, vectors);
  WindowedClip clip;
  try {
    clip.facts = take_frames(member, where, known, hardware, taker);
  } catch (...) {
    vectors.drop();
    throw;
  }
  vectors.end();
  clip.begins = taker.begins();
  return clip;
}

Json clip_windows_json(double seconds, int count, const std::vector<double>& begins) {
  return {{"seconds", seconds}, {"frames", count}, {"begin", begins}};
}

}  // namespace vfm::columns
