// SPDX-License-Identifier: Apache-2.0
#include "jobs/clip_glimpse.h"

#include <algorithm>
#include <functional>

#include "data/clips.h"
#include "io/file.h"
#include "media/decoder.h"
#include "media/scaler.h"

namespace vfm::jobs {
namespace {

std::int64_t count_frames(media::Decoder decoder) {
  media::Frame frame;
  std::int64_t count = 0;
  while (decoder.next(frame))
    ++count;
  return count;
}

/// Takes the planned frames; false if the clip has fewer than the plan needs.
bool take(media::Decoder& decoder, const curate::GlimpsePlan& plan, curate::Glimpse& glimpse) {
  const media::StreamInfo& info = decoder.info();
  const std::size_t count = plan.first.size();
  glimpse.pictures.assign(count, {});
  glimpse.later.assign(plan.step > 0 ? count : 0, {});
  media::Scaler scaler;
  const media::ScaleOptions options{.rotation = info.rotation,
                                    .mirror = info.mirror,
                                    .width = curate::kGlimpseSize,
                                    .height = curate::kGlimpseSize};
  const std::int64_t last = plan.first.back() + plan.step;
  media::Frame frame;
  for (std::int64_t n = 0; n <= last; ++n) {
    if (!decoder.next(frame)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (plan.first[i] == n) scaler.to_rgb(frame, options, glimpse.pictures[i]);
      if (plan.step > 0 && plan.first[i] + plan.step == n)
        scaler.to_rgb(frame, options, glimpse.later[i]);
    }
  }
  return true;
}

curate::Glimpse take_glimpse(const std::function<media::Decoder()>& open) {
  curate::Glimpse glimpse;
  media::Decoder decoder = open();
  const media::StreamInfo info = decoder.info();
  const double fps = info.frame_rate.num > 0 ? info.frame_rate.value() : 25;
  std::int64_t frames = info.image ? 1 : info.frames;
  if (frames < 1) frames = count_frames(open());
  curate::GlimpsePlan plan = curate::plan_glimpse(std::max<std::int64_t>(1, frames), fps);
  if (!take(decoder, plan, glimpse)) {
    // The container promised more than decodes: plan again with what there is.
    plan = curate::plan_glimpse(std::max<std::int64_t>(1, count_frames(open())), fps);
    decoder = open();
    if (!take(decoder, plan, glimpse)) return {};
  }
  glimpse.lag = static_cast<double>(plan.step) / fps;
  return glimpse;
}

}  // namespace

const shard::Member* media_member(const shard::Sample& sample) {
  for (const shard::Member& member : sample.members)
    if (data::is_media_extension(member.extension)) return &member;
  return nullptr;
}

curate::Glimpse glimpse_of_member(const shard::Member& member, const std::string& where,
                                  const media::HardwareDecoder* hardware) {
  return take_glimpse(
      [&] { return media::Decoder(std::string_view(member.data), where, {.hardware = hardware}); });
}

curate::Glimpse glimpse_of_file(const std::string& path, const media::HardwareDecoder* hardware) {
  return take_glimpse([&] { return media::Decoder(path, {.hardware = hardware}); });
}

bool is_media_name(const std::string& path) {
  return data::is_media_extension(io::extension(path));
}

}  // namespace vfm::jobs
