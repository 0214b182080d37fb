// SPDX-License-Identifier: Apache-2.0
#include "media/timeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace vfm::media {
namespace {

// Seconds. Decoding time never falls in a sound stream; by less than this it is jitter.
constexpr double kFall = 0.25;
// A single packet with a wrong time makes no new part: the next one goes on where the part before
// was, within this.
constexpr double kNear = 1;

void shift(AVPacket& packet, std::int64_t by) {
  if (packet.pts != AV_NOPTS_VALUE) packet.pts += by;
  if (packet.dts != AV_NOPTS_VALUE) packet.dts += by;
}

}  // namespace

std::int64_t Timeline::ticks(double seconds, AVRational base) const {
  return std::llround(seconds / av_q2d(base));
}

void Timeline::lead(AVPacket& packet) {
  const std::int64_t time = packet.dts;
  if (time == AV_NOPTS_VALUE) {
    // A picture without a time (MPEG program streams give one in a dozen) takes its time too.
    if (!parts_.empty()) parts_[part_].end += std::max<std::int64_t>(packet.duration, 0);
    if (!parts_.empty()) shift(packet, parts_[part_].shift);
    return;
  }
  const std::int64_t shown = packet.pts != AV_NOPTS_VALUE ? packet.pts : time;
  if (parts_.empty()) parts_.push_back({0, time, time, shown});
  if (time < parts_[part_].last - ticks(kFall, base_)) {
    const bool back = part_ > 0 && time > parts_[part_ - 1].last &&
                      time < parts_[part_ - 1].last + ticks(kNear, base_);
    if (back) {
      --part_;
    } else {
      // A part begins with a key frame: nothing of it is shown earlier.
      parts_.push_back({parts_[part_].shift + parts_[part_].end - shown, time, time, shown});
      part_ = parts_.size() - 1;
    }
  }
  Part& part = parts_[part_];
  const std::int64_t gap =
      packet.duration > 0 ? packet.duration : std::max<std::int64_t>(time - part.last, 1);
  part.end = std::max(part.end, shown + std::min(gap, ticks(kNear, base_)));
  part.last = time;
  shift(packet, part.shift);
}

bool Timeline::follow(AVPacket& packet, AVRational base, bool wait) {
  const std::int64_t time = packet.dts != AV_NOPTS_VALUE ? packet.dts : packet.pts;
  if (time == AV_NOPTS_VALUE) return true;
  if (parts_.empty()) return !wait;
  if (!other_seen_) other_ = part_;
  const bool fell = other_seen_ && time < other_last_ - ticks(kFall, base);
  const bool leapt = other_seen_ && time > other_last_ + ticks(kNear, base);
  if (fell && other_ + 1 >= parts_.size() && wait) return false;
  if ((fell || leapt) && other_ + 1 < parts_.size()) {
    // The part that begins nearest; the newest one of equals.
    std::size_t best = other_ + 1;
    const auto distance = [&](std::size_t i) {
      return std::abs(av_rescale_q(parts_[i].first, base_, base) - time);
    };
    for (std::size_t i = best; i < parts_.size(); ++i)
      if (distance(i) <= distance(best)) best = i;
    other_ = best;
  }
  other_seen_ = true;
  other_last_ = time;
  shift(packet, av_rescale_q(parts_[other_].shift, base_, base));
  return true;
}

bool has_one_time(const AVFormatContext& format) {
  const char* name = format.iformat->name;
  return std::strstr(name, "mp4") || std::strstr(name, "matroska");
}

}  // namespace vfm::media
