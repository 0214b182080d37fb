// SPDX-License-Identifier: Apache-2.0
#include "columns/glimpse.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/rounding.h"
#include "media/decoder.h"
#include "media/scaler.h"

namespace vfm::columns {
namespace {

/// How many frames were decoded, and the time that they fill.
struct Tally {
  std::int64_t frames = 0, begin = 0, end = 0;
  void add(const media::Frame& frame) {
    if (frames++ == 0) begin = frame.pts;
    end = frame.pts + frame.duration;
  }
};

/// A decoder that is counted.
struct Counted {
  media::Decoder decoder;
  Tally tally{};
  bool next(media::Frame& frame) {
    if (!decoder.next(frame)) return false;
    tally.add(frame);
    return true;
  }
};

std::int64_t count_frames(media::Decoder decoder) {
  media::Frame frame;
  std::int64_t count = 0;
  while (decoder.next(frame))
    ++count;
  return count;
}

/// Takes the planned frames; false if the clip has fewer than the plan needs.
bool take(Counted& decoder, const curate::GlimpsePlan& plan, curate::Glimpse& glimpse) {
  const media::StreamInfo& info = decoder.decoder.info();
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

/// The glimpse, and the decoder where it ended.
Counted take_glimpse(const std::function<media::Decoder()>& open, curate::Glimpse& glimpse) {
  Counted decoder{open()};
  const media::StreamInfo info = decoder.decoder.info();
  const double fps = info.frame_rate.num > 0 ? info.frame_rate.value() : 25;
  std::int64_t frames = info.image ? 1 : info.frames;
  if (frames < 1) frames = count_frames(open());
  curate::GlimpsePlan plan = curate::plan_glimpse(std::max<std::int64_t>(1, frames), fps);
  if (!take(decoder, plan, glimpse)) {
    // The container promised more frames than decode: plan with those that there are.
    plan = curate::plan_glimpse(std::max<std::int64_t>(1, count_frames(open())), fps);
    decoder = Counted{open()};
    if (!take(decoder, plan, glimpse)) {
      glimpse = {};
      return decoder;
    }
  }
  glimpse.lag = static_cast<double>(plan.step) / fps;
  return decoder;
}

/// The facts of `names` that `known` lacks. Decodes what is left, to count it.
Json missing_facts(Counted& decoder, const Json& known) {
  const auto lacks = [&](const char* name) {
    return !known.is_object() || !known.contains(name) || !known[name].is_number();
  };
  const media::StreamInfo info = decoder.decoder.info();
  Json facts = Json::object();
  if (lacks("width") || lacks("height")) {
    facts["width"] = info.display_width;
    facts["height"] = info.display_height;
  }
  const bool seconds = lacks("seconds") && lacks("duration");
  if (info.image || !(seconds || lacks("fps") || lacks("frames"))) return facts;
  media::Frame frame;
  while (decoder.next(frame))
    continue;
  const Tally& tally = decoder.tally;
  const double length = static_cast<double>(tally.end - tally.begin) * info.time_base.value();
  // The nominal rate where the video keeps it, as vfm-clip has it.
  const double nominal = info.frame_rate.num > 0 ? info.frame_rate.value() : 0,
               counted = length > 0 ? static_cast<double>(tally.frames) / length : 0;
  const double fps =
      nominal > 0 && std::abs(nominal - counted) < 0.02 * nominal ? nominal : counted;
  if (seconds) facts["seconds"] = six_digits(length);
  if (lacks("fps")) facts["fps"] = six_digits(fps);
  if (lacks("frames")) facts["frames"] = tally.frames;
  return facts;
}

}  // namespace

Seen see_member(const shard::Member& member, const std::string& where, const Json& known,
                const media::HardwareDecoder* hardware) {
  Seen seen;
  Counted decoder = take_glimpse(
      [&] { return media::Decoder(std::string_view(member.data), where, {.hardware = hardware}); },
      seen.glimpse);
  seen.facts = missing_facts(decoder, known);
  return seen;
}

curate::Glimpse glimpse_of_file(const std::string& path, const media::HardwareDecoder* hardware) {
  curate::Glimpse glimpse;
  take_glimpse([&] { return media::Decoder(path, {.hardware = hardware}); }, glimpse);
  return glimpse;
}

}  // namespace vfm::columns
