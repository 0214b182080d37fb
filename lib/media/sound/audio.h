// Reads the sound of a span of a source as coded packets for VideoEncoder::add_audio().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/rational.h"

namespace vfm::media {

enum class AudioMode {
  drop,
  copy,  ///< Packets of the source. Vorbis and packets that mp4 does not allow are read as `aac`.
  aac,   ///< Decoded sound, cut to exact samples and encoded as AAC.
};

/// Parses "drop", "copy" or "aac". Throws Error{usage} for anything else.
AudioMode parse_audio_mode(std::string_view name);

/// The coded sound of a span. Time zero is the beginning of the span.
class AudioTrack {
 public:
  /// Returns true if the source has no sound in the span.
  bool empty() const { return !data_; }
  /// Returns FFmpeg's name of the codec, such as "aac", or "" without sound.
  const std::string& codec() const { return codec_; }
  /// Returns true if the sound was not copied, but encoded.
  bool encoded() const { return encoded_; }
  /// Returns the number of packets that could not be read or decoded.
  std::int64_t corrupt() const { return corrupt_; }

  struct Data;  // Defined in media/container/mux.h.
  const Data* data() const { return data_.get(); }

 private:
  friend class AudioReader;
  friend struct TrackParcel;  // isolated_track.cc
  std::string codec_;
  bool encoded_ = false;
  std::int64_t corrupt_ = 0;
  std::shared_ptr<const Data> data_;
};

/// A reader of the audio stream that a player would choose. The result of read() depends only on
/// its arguments. If the container does not seek exactly, spans in rising order are read faster.
/// Thread-safety: one thread at a time.
///
/// With `copy`, read() returns all packets that overlap the span, and the packets of the 80 ms
/// before the span, which decoders need for a clean start. An edit list of the mp4 hides sound
/// before the span. The last packet may extend beyond the span.
///
/// With `aac`, read() returns exactly round(seconds * rate) samples. Missing sound (a late start, a
/// gap of more than 40 ms, an early end) becomes silence. Sample rates that AAC does not support
/// become 48 kHz, and more than eight channels become two. The bit rate is 64 kbit/s for each
/// channel.
class AudioReader {
 public:
  /// Opens a path or URL as Decoder does. If the source has no sound, every result is empty.
  /// `video` is StreamInfo::stream of the decoder, or -1 for the video that a player would show. If
  /// the time of the source restarts, sound follows the time of stream `video`.
  explicit AudioReader(const std::string& path, int video = -1);
  /// Opens bytes in memory. The bytes must outlive the reader and any work that continues after a
  /// timeout.
  AudioReader(std::string_view bytes, const std::string& name, int video);
  ~AudioReader();
  AudioReader(AudioReader&&) noexcept;

  /// Returns the sound of `span`. The times of `span` are those of Frame::pts, in any time base.
  AudioTrack read(const Span& span, AudioMode mode);

 private:
  struct State;
  struct Work;
  static AudioTrack read_here(State& state, const Span& span, AudioMode mode);
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
