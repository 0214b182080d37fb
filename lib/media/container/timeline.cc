// SPDX-License-Identifier: Apache-2.0
#include "media/container/timeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace vfm::media {
namespace {

// In seconds. The decoding times of an intact stream never fall. A smaller fall is jitter.
constexpr double kFall = 0.25;
// After a single packet with a wrong time, the next packet is within this of the part before, and
// continues that part.
constexpr double kNear = 1;
// After a wraparound, the next packet is within this. Packets may be missing, or only key frames
// read.
constexpr double kAfterTurn = 60;

void shift(AVPacket& packet, std::int64_t by) {
  if (packet.pts != AV_NOPTS_VALUE) packet.pts += by;
  if (packet.dts != AV_NOPTS_VALUE) packet.dts += by;
}

/// Repairs a packet if the clock ran over between its two times: moves pts next to dts.
void join_times(AVPacket& packet, std::int64_t turn) {
  if (turn == 0 || packet.pts == AV_NOPTS_VALUE || packet.dts == AV_NOPTS_VALUE) return;
  if (packet.pts < packet.dts - turn / 2) packet.pts += turn;
  if (packet.pts > packet.dts + turn / 2) packet.pts -= turn;
}

}  // namespace

Timeline::Timeline(const AVStream& stream)
    : base_(stream.time_base),
      turn_(stream.pts_wrap_bits < 63 ? std::int64_t{1} << stream.pts_wrap_bits : 0) {}

bool Timeline::runs_over(std::int64_t time, std::int64_t last, std::int64_t turn,
                         AVRational base) const {
  return turn > 0 && time + turn > last - ticks(kFall, base) &&
         time + turn < last + ticks(kAfterTurn, base);
}

std::int64_t Timeline::ticks(double seconds, AVRational base) const {
  return std::llround(seconds / av_q2d(base));
}

void Timeline::lead(AVPacket& packet) {
  join_times(packet, turn_);
  shift(packet, turned_);
  if (packet.dts != AV_NOPTS_VALUE && !parts_.empty() &&
      runs_over(packet.dts, parts_[part_].last, turn_, base_)) {
    shift(packet, turn_);
    turned_ += turn_;
  }
  const std::int64_t time = packet.dts;
  if (time == AV_NOPTS_VALUE) {
    // Without a time, a picture adds its duration. MPEG program streams time one picture in a
    // dozen.
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
      // A part begins with a key frame, and nothing of the part is shown earlier.
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
  std::int64_t time = packet.dts != AV_NOPTS_VALUE ? packet.dts : packet.pts;
  if (time == AV_NOPTS_VALUE) return true;
  if (parts_.empty()) return !wait;
  const std::int64_t turn = turn_ > 0 ? av_rescale_q(turn_, base_, base) : 0;
  if (!other_seen_) {
    other_ = part_;
    other_last_ = av_rescale_q(parts_[part_].last, base_, base);
    if (runs_over(other_last_, time, turn, base)) other_turned_ = -turn;
  }
  time += other_turned_;
  if (runs_over(time, other_last_, turn, base)) {
    other_turned_ += turn;
    time += turn;
  }
  const bool fell = other_seen_ && time < other_last_ - ticks(kFall, base);
  const bool leapt = other_seen_ && time > other_last_ + ticks(kNear, base);
  if (fell && other_ + 1 >= parts_.size() && wait) return false;
  if ((fell || leapt) && other_ + 1 < parts_.size()) {
    // Takes the part whose begin is nearest. Of equals, takes the newest.
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
  shift(packet, other_turned_ + av_rescale_q(parts_[other_].shift, base_, base));
  return true;
}

bool has_one_time(const AVFormatContext& format) {
  const char* name = format.iformat->name;
  return std::strstr(name, "mp4") || std::strstr(name, "matroska");
}

}  // namespace vfm::media
