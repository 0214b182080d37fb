// Inside lib/media only: reads the audio packets of a source, beginning at any time.
//
// If the container seeks exactly (mp4, Matroska), each start() seeks. Other files are read from the
// beginning, and a Timeline aligns the times of packets with the video. Thread-safety: one thread
// at a time.
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
  /// Opens the source. Sound follows the time of the video stream with index `video`. -1 means the
  /// video stream that a player shows.
  AudioPackets(Source source, int video);

  const std::string& name() const { return source_.name; }
  /// Returns the audio stream that a player would choose, or null.
  const AVStream* stream() const { return stream_; }
  /// Returns the unit of packet times: the time base of the stream, or samples if the times of the
  /// file are wrong.
  AVRational base() const;
  /// Returns the time at which the sound of the packet ends, or AV_NOPTS_VALUE if unknown.
  std::int64_t end_of(const AVPacket& packet) const;
  /// Returns the number of audio streams.
  int streams() const { return streams_; }
  /// Returns true if the source has sound in an unknown codec; stream() is then null. Reads up to
  /// the first packet of this sound.
  bool is_unknown();

  /// Makes next() begin with the packet for `time` (in units of base()) or with an earlier packet.
  /// Adds the number of unreadable packets to `corrupt`. Throws Error.
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
  std::optional<bool> unknown_;
  bool seeks_ = true;
  PacketPtr first_;

  Timeline timeline_;
  std::deque<PacketPtr> kept_, waiting_;  // `waiting_` has packets without a final time.
  std::size_t place_ = 0;
  std::int64_t floor_ = INT64_MIN;        // Time before which packets are no longer kept.
  bool counted_ = false;
  std::int64_t each_ = 0;                 // Samples of each packet; 0 if they vary.
  std::int64_t counted_end_ = 0;
  std::int64_t damage_ = 0;  // Corrupt packets found on opening.
};

/// Returns the time at which the sound of the packet begins, or AV_NOPTS_VALUE if unknown.
std::int64_t time_of(const AVPacket& packet);

}  // namespace vfm::media
