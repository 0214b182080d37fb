// Inside lib/media only: one time for a source whose timestamps restart, such as transport streams
// that were joined end to end, or run over, as their clock of 33 bits does each 26.5 hours.
//
// A stream leads: where its decoding time falls back, what follows is shifted so that it goes on
// where it was; by all of the clock where that makes time go on by itself. Other streams get the
// shift of the part they belong to, so all stay in time with each other. Any reader of a file's
// packets from its beginning that passes the leading stream's to a Timeline gets the same shifts,
// so decoder and sound agree without exchanging anything.
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
  /// `stream`: the one that leads.
  explicit Timeline(const AVStream& stream);

  /// Shifts a packet of the stream that leads.
  void lead(AVPacket& packet);
  /// Shifts a packet of one other stream, whose time base is `base`. False if it belongs to a part
  /// that the leading stream has not come to: retry after the next packet of that one. Without
  /// `wait` it then stays in the part that there is.
  bool follow(AVPacket& packet, AVRational base, bool wait = true);
  /// Time has restarted or run over at least once.
  bool restarted() const { return parts_.size() > 1 || turned_ != 0; }

 private:
  /// From one start of time to the next.
  struct Part {
    std::int64_t shift = 0;  // to be added to the file's times, of a clock that never runs over
    std::int64_t first = 0;  // the first and the last decoding time in the file
    std::int64_t last = 0;
    std::int64_t end = 0;  // when the last picture is over, in the file's time
  };
  std::int64_t ticks(double seconds, AVRational base) const;
  bool runs_over(std::int64_t time, std::int64_t last, std::int64_t turn, AVRational base) const;

  AVRational base_{1, 1};
  std::int64_t turn_ = 0;    // when the clock begins anew, in ticks of `base_`; 0: never
  std::int64_t turned_ = 0;  // what it has run over by
  std::vector<Part> parts_;
  std::size_t part_ = 0;   // of the leading stream
  std::size_t other_ = 0;  // the part of the stream that follows
  std::int64_t other_turned_ = 0;
  bool other_seen_ = false;
  std::int64_t other_last_ = 0;
};

/// Whether the container has one time from its beginning to its end and seeks in it exactly. In
/// others packets are read from the first on, and a Timeline looks after them.
bool has_one_time(const AVFormatContext& format);

}  // namespace vfm::media
