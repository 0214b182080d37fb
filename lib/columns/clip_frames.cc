// SPDX-License-Identifier: Apache-2.0
#include "columns/clip_frames.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/json.h"
#include "base/rounding.h"

namespace vfm::columns {
namespace {

/// The number of decoded frames, and the begin and end of their time in ticks.
struct Tally {
  std::int64_t frames = 0, begin = 0, end = 0;
  void add(const media::Frame& frame) {
    if (frames++ == 0) begin = frame.pts;
    end = frame.pts + frame.duration;
  }
};

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

/// Passes frames 0 to `last` to `taker`. Returns false if the clip has fewer frames.
bool hand_over(Counted& decoder, std::int64_t last, FrameTaker& taker) {
  const media::StreamInfo& info = decoder.decoder.info();
  media::Frame frame;
  for (std::int64_t n = 0; n <= last; ++n) {
    if (!decoder.next(frame)) return false;
    taker.take(n, frame, info);
  }
  return true;
}

/// Passes the planned frames to `taker`, and returns the decoder after the last passed frame.
Counted take_planned(const std::function<media::Decoder()>& open, FrameTaker& taker) {
  Counted decoder{open()};
  const media::StreamInfo info = decoder.decoder.info();
  const double fps = info.frame_rate.num > 0 ? info.frame_rate.value() : 25;
  std::int64_t frames = info.image ? 1 : info.frames;
  if (frames < 1) frames = count_frames(open());
  if (hand_over(decoder, taker.begin(std::max<std::int64_t>(1, frames), fps), taker))
    return decoder;
  // The container claims more frames than can be decoded. Plan again with the real number.
  frames = count_frames(open());
  decoder = Counted{open()};
  if (!hand_over(decoder, taker.begin(std::max<std::int64_t>(1, frames), fps), taker))
    taker.give_up();
  return decoder;
}

/// Returns the facts that `known` lacks. Decodes the remaining frames only if they must be counted.
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
  // The nominal rate is used if the frames keep it, as in vfm-clip.
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

media::ScaleOptions as_shown(const media::StreamInfo& info) {
  return {.rotation = info.rotation,
          .mirror = info.mirror,
          .width = info.display_width,
          .height = info.display_height};
}

std::int64_t part_begin(std::int64_t frames, std::int64_t n, std::int64_t k) {
  return frames / n * k + frames % n * k / n;
}

std::vector<std::int64_t> plan_clip_frames(std::int64_t frames, int count) {
  std::vector<std::int64_t> plan;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t middle = part_begin(frames, std::int64_t{2} * count, 2 * i + 1);
    if (plan.empty() || plan.back() != middle) plan.push_back(middle);
  }
  return plan;
}

std::int64_t MiddleFrames::begin(std::int64_t frames, double /*fps*/) {
  plan_ = plan_clip_frames(frames, count_);
  next_ = 0;
  clear();
  return plan_.back();
}

void MiddleFrames::take(std::int64_t number, const media::Frame& frame,
                        const media::StreamInfo& info) {
  if (next_ == plan_.size() || plan_[next_] != number) return;
  ++next_;
  use(frame, info);
}

Json take_frames(const shard::Member& member, const std::string& where, const Json& known,
                 const media::HardwareDecoder* hardware, FrameTaker& taker) {
  Counted decoder = take_planned(
      [&] {
        return media::Decoder(std::string_view(member.data), where,
                              {.use = media::FrameUse::glance, .hardware = hardware});
      },
      taker);
  return missing_facts(decoder, known);
}

void take_file_frames(const std::string& path, const media::HardwareDecoder* hardware,
                      FrameTaker& taker) {
  take_planned(
      [&] { return media::Decoder(path, {.use = media::FrameUse::glance, .hardware = hardware}); },
      taker);
}

}  // namespace vfm::columns
