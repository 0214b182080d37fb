// Reads the sound of a span of a source, as coded packets for VideoEncoder::add_audio().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/rational.h"

namespace vfm::media {

enum class AudioMode {
  drop,  ///< no sound
  copy,  ///< the source's packets, unchanged; aac for Vorbis, and if mp4 does not allow them
  aac,   ///< decoded, cut to the sample, encoded as AAC
};

/// Parses "drop", "copy" or "aac". Throws Error{usage} for anything else.
AudioMode parse_audio_mode(std::string_view name);

/// The coded sound of a span; time zero is the span's beginning. Cheap to copy.
class AudioTrack {
 public:
  /// Returns true if there are no packets: the source has no sound, or no sound in the span.
  bool empty() const { return !data_; }
  const std::string& codec() const { return codec_; }  ///< FFmpeg's name: "aac"; "" if empty
  bool encoded() const { return encoded_; }            ///< a new encoding, not the source's packets
  std::int64_t corrupt() const { return corrupt_; }  ///< packets that could not be read or decoded

  struct Data;  // the packets (media/container/mux.h)
  const Data* data() const { return data_.get(); }

 private:
  friend class AudioReader;
  friend struct TrackParcel;  // isolated_track.cc
  std::string codec_;
  bool encoded_ = false;
  std::int64_t corrupt_ = 0;
  std::shared_ptr<const Data> data_;
};

/// Reads sound from the audio stream that a player would choose. The result of read() depends on
/// its arguments alone. In containers that do not seek exactly, spans in order of time are quicker.
/// Thread-safety: one thread at a time.
///
/// `copy` gives all packets that overlap the span, and the packets of the 80 ms before the span,
/// which decoders need to start cleanly. The mp4's edit list hides sound before the span, so the
/// timing is exact. The last packet may extend beyond the span.
///
/// `aac` gives exactly the samples of the span: round(seconds * rate). Missing sound (a late start,
/// a gap of more than 40 ms, an early end) becomes silence. Rates that AAC lacks become 48 kHz;
/// more than eight channels become two. AAC has 64 kbit/s a channel.
class AudioReader {
 public:
  /// Opens a path or URL as Decoder does. For a source without sound every read is empty. `video`
  /// is the decoder's StreamInfo::stream, or -1 for the stream that a player would show. If the
  /// source's time restarts, sound follows the time of stream `video`.
  explicit AudioReader(const std::string& path, int video = -1);
  /// Reads `bytes`, which must outlive the reader and all its work.
  AudioReader(std::string_view bytes, const std::string& name, int video);
  ~AudioReader();
  AudioReader(AudioReader&&) noexcept;

  /// `span` is in the source's time, like Frame::pts, in any time base.
  AudioTrack read(const Span& span, AudioMode mode);

 private:
  struct State;
  struct Work;
  static AudioTrack read_here(State& state, const Span& span, AudioMode mode);
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
