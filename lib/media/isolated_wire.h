// Inside lib/media only: what the parent and a child of isolated.h say to each other. Both are one
// program, so structs travel as they are; whoever receives checks their sizes and values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "media/audio.h"
#include "media/decoder.h"
#include "media/sound_meter.h"

namespace vfm::media {

/// A descriptor that is closed. Movable.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  int release() noexcept;

 private:
  int fd_;
};

/// Memory that is mapped from a descriptor.
class Mapping {
 public:
  Mapping() = default;
  /// All who map it see what is written. Throws Error.
  Mapping(int fd, std::size_t size, bool writable);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

/// What a child is; nothing: only confined.
enum class Want : std::uint32_t { decoder, audio, sound, nothing };
enum class Ask : std::uint32_t { open, next, seek, read, measure };

struct Request {
  Ask ask = Ask::open;
  // of open, with the name behind it, and two descriptors: the bytes, and what both map
  Want want = Want::decoder;
  std::uint64_t bytes = 0, shared = 0;  ///< sizes of these
  std::uint64_t max_pixels = 0, memory = 0;
  std::int32_t stream = -1, threads = 1;  ///< stream: also the `video` of sound
  std::uint8_t keyframes_only = 0, deinterlace = 1, keep_hdr = 0, skip_loop_filter = 0;
  FrameUse use = FrameUse::any;
  // of next and seek
  std::uint64_t done = 0;  ///< places of pictures (isolated_pictures.h), as bits
  std::uint32_t most = 1;  ///< of next: pictures at once
  std::int64_t pts = 0;
  // of the others
  std::int64_t begin = 0, end = 0, base_num = 0, base_den = 1;
  AudioMode mode = AudioMode::drop;
};

/// `ask` is read or measure.
Request request_for(Ask ask, const Span& span, AudioMode mode = AudioMode::drop);

enum class Answer : std::uint32_t { done, end, error };

/// Behind it: the text of an error, or what open says of a stream (JSON).
struct Reply {
  Answer answer = Answer::done;
  Cause cause = Cause::other;
  std::int64_t corrupt = 0;
  std::uint8_t seeks = 0;
  std::uint64_t bytes = 0;  ///< of what lies in the room that is not a picture
  std::uint8_t has_loudness = 0, has_speech = 0;
  double loudness = 0, silence = 1, speech = 0;
};

/// One message, with up to two descriptors. False when the other end is gone.
bool send_message(int channel, const void* head, std::size_t size, std::string_view text,
                  const std::vector<int>& descriptors = {});
/// Waits for one. False at the end, and for a message that is no such one.
bool receive_message(int channel, void* head, std::size_t size, std::string& text,
                     std::vector<Descriptor>& descriptors);

/// What a stream is, as text and back. Throws Error for what is none.
std::string pack_info(const StreamInfo& info);
StreamInfo parse_info(const std::string& text);

/// A track's packets and parameters as bytes and back. Throws Error for what is none.
std::string pack_track(const AudioTrack& track);
AudioTrack parse_track(std::string_view bytes);

}  // namespace vfm::media
