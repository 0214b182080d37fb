// Inside lib/media only: the messages between the parent and a child of isolated.h. Parent and
// child run the same program, so structs are sent unchanged; the receiver checks sizes and values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "media/decode/decoder.h"
#include "media/sound/audio.h"
#include "share/channel.h"

namespace vfm::media {

/// The class for which a child decodes: Decoder, AudioReader, SoundMeter, SoundSamples.
enum class Want : std::uint32_t { decoder, audio, sound, samples };
enum class Ask : std::uint32_t { open, next, seek, read, measure, hear };

struct Request {
  Ask ask = Ask::open;
  // For open, which has the name as text and two descriptors: the source, and the shared memory.
  Want want = Want::decoder;
  std::uint64_t bytes = 0, shared = 0;  ///< sizes of source and memory
  std::uint64_t max_pixels = 0, memory = 0;
  std::int32_t stream = -1, threads = 1;  ///< stream: for sound, `video`
  std::uint8_t keyframes_only = 0, deinterlace = 1, keep_hdr = 0;
  FrameUse use = FrameUse::any;
  // For next and seek.
  std::uint64_t done = 0;  ///< places to free (isolated_pictures.h), as bits
  std::uint32_t most = 1;  ///< for next: pictures at once
  std::int64_t pts = 0;
  // For read, measure and hear.
  std::int64_t begin = 0, end = 0, base_num = 0, base_den = 1;
  AudioMode mode = AudioMode::drop;
};

/// Makes a request to read, measure or hear.
Request request_for(Ask ask, const Span& span, AudioMode mode = AudioMode::drop);

enum class ChildAnswer : std::uint32_t { done, end, error };

/// The head of a reply. The reply's text is an error's message or, for open, the facts of a stream
/// (JSON).
struct Reply {
  ChildAnswer answer = ChildAnswer::done;
  Cause cause = Cause::other;
  std::int64_t corrupt = 0;
  std::uint8_t seeks = 0;
  std::uint64_t bytes = 0;  ///< of data in the room, other than pictures
  std::int64_t begin = 0;   ///< SoundSamples::Heard::begin
  std::uint8_t has_loudness = 0, has_speech = 0;
  double loudness = 0, silence = 1, speech = 0;
};

/// Converts a stream's facts to text and back. Throws Error for invalid text.
std::string pack_info(const StreamInfo& info);
StreamInfo parse_info(const std::string& text);

/// Converts a track's packets and parameters to bytes and back. Throws Error for invalid bytes.
std::string pack_track(const AudioTrack& track);
AudioTrack parse_track(std::string_view bytes);

}  // namespace vfm::media
