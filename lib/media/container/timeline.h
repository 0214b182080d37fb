// Inside lib/media only: makes time continuous for a source whose timestamps restart or wrap
// around. Timestamps restart in joined transport streams. The 33-bit clock of transport streams
// wraps around after 26.5 hours.
//
// One stream of the source is the leading stream. If the decoding time of this stream falls back,
// all later times of all streams are shifted, so streams remain in sync. Readers that pass all
// packets of the leading stream to a Timeline get the same shifts. Thread-safety: one thread at a
// time.
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
  /// Makes `stream` the leading stream.
  explicit Timeline(const AVStream& stream);

  /// Shifts a packet of the leading stream.
  void lead(AVPacket& packet);
  /// Shifts a packet of another stream with the time base `base`. All calls of follow() must be for
  /// the same stream. Returns false if the leading stream has not reached this part of the file.
  /// The caller must then try again after the next packet of the leading stream. If `wait` is
  /// false, the packet gets the current shift instead.
  bool follow(AVPacket& packet, AVRational base, bool wait = true);
  /// Returns true if time has restarted or wrapped at least once.
  bool restarted() const { return parts_.size() > 1 || turned_ != 0; }

 private:
  /// A part of the file between two restarts of time.
  struct Part {
    std::int64_t shift = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t end = 0;
  };
  std::int64_t ticks(double seconds, AVRational base) const;
  bool runs_over(std::int64_t time, std::int64_t last, std::int64_t turn, AVRational base) const;

  AVRational base_{1, 1};
  std::int64_t turn_ = 0;    // Range of the clock in `base_`; 0 if the clock never wraps.
  std::int64_t turned_ = 0;
  std::vector<Part> parts_;
  std::size_t part_ = 0;
  std::size_t other_ = 0;
  std::int64_t other_turned_ = 0;
  bool other_seen_ = false;
  std::int64_t other_last_ = 0;
};

/// Returns true if the container has one continuous time and exact seeking. Other containers must
/// be read from the first packet on, with a Timeline.
bool has_one_time(const AVFormatContext& format);

}  // namespace vfm::media
