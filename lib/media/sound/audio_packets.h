// Inside lib/media only: reads the packets of a source's sound, from any time on.
//
// If the container seeks exactly (mp4, Matroska), each start() seeks. In other containers, time
// after a seek is a guess, or restarts. A file of these containers is therefore read once from its
// beginning, and packets of the current span are kept. A Timeline aligns packet times with the
// video's. To go back, the file is read again.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "media/container/input.h"
#include "media/container/timeline.h"
#include "media/libav.h"

namespace vfm::media {

class AudioPackets {
 public:
  /// Opens the source. Sound follows the time of the video stream with index `video`; -1 is the
  /// stream that a player shows.
  AudioPackets(Source source, int video);

  const std::string& name() const { return source_.name; }
  /// Returns the audio stream that a player would choose, or null if there is none.
  const AVStream* stream() const { return stream_; }
  /// Returns the unit of packet times: the stream's time base, or samples if the file's times are
  /// wrong.
  AVRational base() const;
  /// Returns the end of a packet's sound, or AV_NOPTS_VALUE if unknown.
  std::int64_t end_of(const AVPacket& packet) const;
  /// Returns the number of audio streams.
  int streams() const { return streams_; }
  /// Returns true if there is sound of an unknown codec; then stream() is null. Reads up to the
  /// first packet of this sound, which some announced sound never has.
  bool is_unknown();

  /// Makes next() begin with the packet heard at `time`, in base(), or an earlier packet. Adds
  /// unreadable packets to `corrupt`. Throws Error.
  void start(std::int64_t time, std::int64_t& corrupt);
  /// Reads the next packet. Returns false at the end.
  bool next(AVPacket* packet, std::int64_t& corrupt);

 private:
  void open();
  bool seek(std::int64_t time);
  void start_by_seeking(std::int64_t time, std::int64_t& corrupt);
  bool read(AVPacket* packet, std::int64_t& corrupt);
  bool read_more(std::int64_t& corrupt);
  void keep(PacketPtr packet);
  void check_clock(std::int64_t& corrupt);
  std::int64_t samples_of(const AVPacket& packet) const;

  Source source_;
  int video_;
  std::unique_ptr<Input> input_;
  AVStream* stream_ = nullptr;
  int streams_ = 0;
  std::optional<bool> unknown_;  // is_unknown(), once it is known
  bool seeks_ = true;
  PacketPtr first_;  // the packet after a seek

  Timeline timeline_;
  std::deque<PacketPtr> kept_, waiting_;  // waiting_: for video packets that give their time
  std::size_t place_ = 0;                 // in kept_
  std::int64_t floor_ = INT64_MIN;        // packets before this time are gone
  bool counted_ = false;                  // time is counted in samples: the file's is wrong
  std::int64_t each_ = 0;                 // samples of each packet; 0: each packet states it
  std::int64_t counted_end_ = 0;
  std::int64_t damage_ = 0;  // found on opening, to be reported
};

/// Returns the time at which the packet's sound begins, or AV_NOPTS_VALUE if unknown.
std::int64_t time_of(const AVPacket& packet);

}  // namespace vfm::media
