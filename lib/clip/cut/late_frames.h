// Frees the pixels of waiting frames that do not fit into memory.
//
// A frame waits for about a hundred others (curate::kShotLag) until its place is known: of 4K video
// that would take more than a gigabyte. Then it waits for its clip's encoder, which may be a minute
// of video behind. So pixels are freed, and decoded again when needed. Decoding gives the same
// frames each time, so nothing else changes.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clip/cut/bars.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

/// The bytes of a frame's planes.
std::int64_t frame_bytes(const media::Frame& frame);
/// Frees them.
void free_pixels(media::Frame& frame);
/// Whether they were freed.
inline bool is_freed(const media::Frame& frame) {
  return frame.plane[0] == nullptr;
}

/// The frames of a video, for the thread that decodes it: a second decoder follows the first.
class LateFrames {
 public:
  /// `most_seconds`: ClipOptions::most_seconds, where the frames begin.
  LateFrames(std::string path, const media::DecodeOptions& decode, double most_seconds);

  /// Frees the pixels of `frame` if the waiting frames together would take more than 512 MiB.
  void spare(media::Frame& frame);
  /// The frame with its pixels, as the video's Decoder gave it. Numbers must rise from call to
  /// call. Throws Error when the file has changed meanwhile.
  media::Frame fetch(const media::Frame& freed);

 private:
  std::string path_;
  media::DecodeOptions decode_;
  double most_seconds_;
  std::optional<media::Decoder> decoder_;  // opened when the first is needed
  std::int64_t begin_ = 0, next_ = 0;      // the frame that it began with, and its next one
};

/// The frames of one clip, for the encoding thread: a decoder that begins at a key frame before it.
class ClipFrames {
 public:
  /// `picture`: the part of a frame without bars, if there are bars.
  ClipFrames(std::string path, const media::DecodeOptions& decode,
             std::optional<CroppedPicture> picture);
  /// The frame with its pixels. Times must rise from call to call. Throws Error when the file has
  /// changed meanwhile.
  media::Frame fetch(const media::Frame& freed);

 private:
  bool find(const media::Frame& freed, media::Frame& frame);

  std::string path_;
  media::DecodeOptions decode_;
  std::optional<CroppedPicture> picture_;
  std::optional<media::Decoder> decoder_;  // opened when the first is needed
};

}  // namespace vfm::clip
