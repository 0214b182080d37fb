// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/glimpse.h"

#include "base/json.h"
#include "columns/clip_frames.h"
#include "media/colour/scaler.h"

namespace vfm::columns {
namespace {

class GlimpseTaker final : public FrameTaker {
 public:
  explicit GlimpseTaker(curate::Glimpse& glimpse) : glimpse_(glimpse) {}

  std::int64_t begin(std::int64_t frames, double fps) override {
    plan_ = curate::plan_glimpse(frames, fps);
    glimpse_.pictures.assign(plan_.first.size(), {});
    glimpse_.later.assign(plan_.step > 0 ? plan_.first.size() : 0, {});
    glimpse_.lag = static_cast<double>(plan_.step) / fps;
    return plan_.first.back() + plan_.step;
  }

  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    const media::ScaleOptions options{.rotation = info.rotation,
                                      .mirror = info.mirror,
                                      .width = curate::kGlimpseSize,
                                      .height = curate::kGlimpseSize};
    for (std::size_t i = 0; i < plan_.first.size(); ++i) {
      if (plan_.first[i] == number) scaler_.to_rgb(frame, options, glimpse_.pictures[i]);
      if (plan_.step > 0 && plan_.first[i] + plan_.step == number)
        scaler_.to_rgb(frame, options, glimpse_.later[i]);
    }
  }

  void give_up() override { glimpse_ = {}; }

 private:
  curate::Glimpse& glimpse_;
  curate::GlimpsePlan plan_;
  media::Scaler scaler_;
};

}  // namespace

Seen see_member(const shard::Member& member, const std::string& where, const Json& known,
                const media::HardwareDecoder* hardware) {
  Seen seen;
  GlimpseTaker taker(seen.glimpse);
  seen.facts = take_frames(member, where, known, hardware, taker);
  return seen;
}

curate::Glimpse glimpse_of_file(const std::string& path, const media::HardwareDecoder* hardware) {
  curate::Glimpse glimpse;
  GlimpseTaker taker(glimpse);
  take_file_frames(path, hardware, taker);
  return glimpse;
}

}  // namespace vfm::columns
