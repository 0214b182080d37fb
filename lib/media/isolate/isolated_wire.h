// Inside lib/media only: the messages between a parent and a child of isolated.h. Parent and child
// run the same program, so structs are sent unchanged. The receiver checks sizes and values.
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

/// The class that needs a child: Decoder, AudioReader, SoundMeter or SoundSamples.
enum class Want : std::uint32_t { decoder, audio, sound, samples };
enum class Ask : std::uint32_t { open, next, seek, read, measure, hear };

struct Request {
  Ask ask = Ask::open;
  // Members for `open`. An `open` request is sent with the name of the source as text, and with
  // descriptors of the source and the shared memory. For an object, the first descriptor is a
  // channel (container/far_bytes.h).
  Want want = Want::decoder;
  std::uint64_t bytes = 0, shared = 0;  ///< Sizes of the source and the shared memory in bytes.
  std::uint8_t far = 0, far_jumps = 0;  ///< Whether it is an object, and FarFacts::jumps.
  std::uint64_t max_pixels = 0, memory = 0;
  std::int32_t stream = -1, threads = 1;  ///< Stream of the video, and number of threads.
  std::uint8_t keyframes_only = 0, deinterlace = 1, keep_hdr = 0;
  FrameUse use = FrameUse::any;
  // Members for `next` and `seek`.
  std::uint64_t done = 0;  ///< One bit for each place that the child may reuse (kPicturePlaces).
  std::uint32_t most = 1;  ///< Highest number of pictures in the answer to `next`.
  std::int64_t pts = 0;
  // Members for `read`, `measure` and `hear`.
  std::int64_t begin = 0, end = 0, base_num = 0, base_den = 1;
  AudioMode mode = AudioMode::drop;
};

/// Returns a `read`, `measure` or `hear` request for `span`.
Request request_for(Ask ask, const Span& span, AudioMode mode = AudioMode::drop);

enum class ChildAnswer : std::uint32_t { done, end, error };

/// The head of a reply. The text after the head is the message of an error or, for `open`, the
/// properties of a stream as JSON.
struct Reply {
  ChildAnswer answer = ChildAnswer::done;
  Cause cause = Cause::other;
  std::int64_t corrupt = 0;
  std::uint8_t seeks = 0;
  std::uint64_t bytes = 0;  ///< Number of bytes other than pictures in the room (PicturesHead).
  std::int64_t begin = 0;   ///< Value for SoundSamples::Heard::begin.
  std::uint8_t has_loudness = 0, has_speech = 0;
  double loudness = 0, silence = 1, speech = 0;
};

/// Convert the properties of a stream to text and back. Throw Error for invalid text.
std::string pack_info(const StreamInfo& info);
StreamInfo parse_info(const std::string& text);

/// Convert the packets and parameters of a track to bytes and back. Throw Error for invalid bytes.
std::string pack_track(const AudioTrack& track);
AudioTrack parse_track(std::string_view bytes);

}  // namespace vfm::media
