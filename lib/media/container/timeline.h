// Inside lib/media only: makes time continuous for a source whose timestamps restart, as in joined
// transport streams, or wrap around, as the 33-bit clock of transport streams does every 26.5
// hours.
//
// One stream is the leading stream. If its decoding time falls back, later times are shifted so
// that time continues. The shift is the clock's full range if that suffices. All streams get this
// shift in the same part of the file, so they stay in sync. Each reader that passes all packets of
// the leading stream, from the beginning of the file, to a Timeline gets the same shifts.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "media/libav.h"

namespace vfm::media {

class Timeline {
 public:
  Timeline() = default;
  /// `stream` is the leading stream.
  explicit Timeline(const AVStream& stream);

  /// Shifts a packet of the leading stream.
  void lead(AVPacket& packet);
  /// Shifts a packet of one other stream, with time base `base`. Returns false if the packet
  /// belongs to a part that the leading stream has not reached: retry after the next packet of the
  /// leading stream. Without `wait` the packet gets the shift of the present part.
  bool follow(AVPacket& packet, AVRational base, bool wait = true);
  /// Returns whether time has restarted or wrapped at least once.
  bool restarted() const { return parts_.size() > 1 || turned_ != 0; }

 private:
  /// The span from one restart of time to the next.
  struct Part {
    std::int64_t shift = 0;  // to be added to the file's times, after the clock is unwrapped
    std::int64_t first = 0;  // the first and the last decoding time in the file
    std::int64_t last = 0;
    std::int64_t end = 0;  // end of the last picture, in the file's time
  };
  std::int64_t ticks(double seconds, AVRational base) const;
  bool runs_over(std::int64_t time, std::int64_t last, std::int64_t turn, AVRational base) const;

  AVRational base_{1, 1};
  std::int64_t turn_ = 0;    // range of the clock, in ticks of `base_`; 0: it never wraps
  std::int64_t turned_ = 0;  // sum of the wraps so far
  std::vector<Part> parts_;
  std::size_t part_ = 0;   // of the leading stream
  std::size_t other_ = 0;  // the part of the stream passed to follow()
  std::int64_t other_turned_ = 0;
  bool other_seen_ = false;
  std::int64_t other_last_ = 0;
};

/// Returns whether the container has one continuous time and seeks exactly. Other containers are
/// read from the first packet on, with a Timeline.
bool has_one_time(const AVFormatContext& format);

}  // namespace vfm::media
