// SPDX-License-Identifier: Apache-2.0
#include "columns/score/score_frames.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "columns/clip_frames.h"
#include "columns/embed/clip_vector.h"
#include "media/colour/scaler.h"

namespace vfm::columns {
namespace {

class ScoreTaker final : public FrameTaker {
 public:
  explicit ScoreTaker(const ScoreEyes& eyes) : eyes_(eyes) {}

  std::int64_t begin(std::int64_t frames, double fps) override {
    taken_ = {};
    seen_plan_.clear();
    clip_plan_.clear();
    failed_ = false;
    if (eyes_.captioner != nullptr) {
      const double share = std::min(1.0, eyes_.window / static_cast<double>(frames));
      seen_plan_ = eyes_.captioner->plan(frames, fps, eyes_.fps * share);
      taken_.seen.still = frames == 1;
      taken_.seen.seconds = static_cast<double>(frames) / fps;
      for (const std::int64_t frame : seen_plan_)
        taken_.seen.times.push_back(static_cast<double>(frame) / fps);
      taken_.seen.fps = static_cast<double>(seen_plan_.size()) / static_cast<double>(frames) * fps;
    }
    if (eyes_.pictures != nullptr) clip_plan_ = plan_clip_frames(frames, kClipFrames);
    return std::max(seen_plan_.empty() ? 0 : seen_plan_.back(),
                    clip_plan_.empty() ? 0 : clip_plan_.back());
  }

  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    models::SeenFrames& seen = taken_.seen;
    const bool by_captioner = wanted(seen_plan_, seen.frames.size(), number);
    const bool by_clip = wanted(clip_plan_, taken_.frames.size(), number);
    if (!by_captioner && !by_clip) return;
    scaler_.to_rgb(frame, as_shown(info), image_);
    const models::PictureView picture{image_.width, image_.height, image_.pixels};
    if (by_clip) taken_.frames.push_back(eyes_.pictures->prepare(picture));
    if (!by_captioner) return;
    seen.width = image_.width;
    seen.height = image_.height;
    seen.frames.push_back(eyes_.captioner->prepare(picture, seen.still ? 0 : seen_plan_.size()));
  }

  void give_up() override { failed_ = true; }

  /// Throws Error if the clip has fewer frames than its container says.
  ScoreFrames result() {
    if (failed_ || taken_.seen.frames.size() != seen_plan_.size() ||
        taken_.frames.size() != clip_plan_.size())
      fail("its frames cannot be decoded to the end");
    return std::move(taken_);
  }

 private:
  static bool wanted(const std::vector<std::int64_t>& plan, std::size_t next, std::int64_t number) {
    return next < plan.size() && plan[next] == number;
  }

  const ScoreEyes& eyes_;
  std::vector<std::int64_t> seen_plan_, clip_plan_;
  ScoreFrames taken_;
  bool failed_ = false;
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

ScoreFrames take_score_frames(const shard::Member& member, const std::string& where,
                              const ScoreEyes& eyes, const media::HardwareDecoder* hardware) {
  ScoreTaker taker(eyes);
  // All facts are declared known, so that take_frames() does not count the frames.
  const Json known = {{"width", 0}, {"height", 0}, {"seconds", 0}, {"fps", 0}, {"frames", 0}};
  take_frames(member, where, known, hardware, taker);
  return taker.result();
}

}  // namespace vfm::columns
