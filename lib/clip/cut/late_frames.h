// Frees pixels of waiting frames that do not fit into memory, and decodes them again when needed.
//
// A frame waits for about a hundred later frames (curate::kShotLag) until its shot is known. Then
// the frame waits for its clip's encoder, which may lag by a minute of video. Thread-safety: one
// thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clip/cut/bars.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

/// Returns the bytes of a frame's planes.
std::int64_t frame_bytes(const media::Frame& frame);
void free_pixels(media::Frame& frame);
inline bool is_freed(const media::Frame& frame) {
  return frame.plane[0] == nullptr;
}

/// Fetches freed frames for the thread that decodes the video, with a second decoder that follows
/// the first.
class LateFrames {
 public:
  /// `most_seconds`: ClipOptions::most_seconds, which decides where frames begin.
  LateFrames(std::string path, const media::DecodeOptions& decode, double most_seconds);

  /// Frees the pixels of `frame` if the waiting frames together would take more than 512 MiB.
  void spare(media::Frame& frame);
  /// Returns the frame with its pixels, as the video's Decoder did. Call fetch() in ascending order
  /// of frame numbers. Throws Error if the file has changed meanwhile.
  media::Frame fetch(const media::Frame& freed);

 private:
  std::string path_;
  media::DecodeOptions decode_;
  double most_seconds_;
  std::optional<media::Decoder> decoder_;  // opened when the first is needed
  std::int64_t begin_ = 0, next_ = 0;      // numbers of the decoder's first and next frame
};

/// Fetches freed frames of one clip for the encoding thread, with a decoder that begins at a key
/// frame before the clip.
class ClipFrames {
 public:
  /// `picture`: the part without bars, if there are bars.
  ClipFrames(std::string path, const media::DecodeOptions& decode,
             std::optional<CroppedPicture> picture);
  /// Returns the frame with its pixels. Call fetch() in ascending order of time. Throws Error if
  /// the file has changed meanwhile.
  media::Frame fetch(const media::Frame& freed);

 private:
  bool find(const media::Frame& freed, media::Frame& frame);

  std::string path_;
  media::DecodeOptions decode_;
  std::optional<CroppedPicture> picture_;
  std::optional<media::Decoder> decoder_;  // opened when the first is needed
};

}  // namespace vfm::clip
