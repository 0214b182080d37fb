// Frees the pixels of waiting frames that do not fit into memory, and decodes these frames again
// later.
//
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clip/cut/bars.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

/// Returns the size of a frame's planes in bytes.
std::int64_t frame_bytes(const media::Frame& frame);
void free_pixels(media::Frame& frame);
inline bool is_freed(const media::Frame& frame) {
  return frame.plane[0] == nullptr;
}

/// Decodes freed frames again, for the thread that decodes the video.
class LateFrames {
 public:
  /// `most_seconds` is ClipOptions::most_seconds.
  LateFrames(std::string path, const media::DecodeOptions& decode, double most_seconds);

  /// Frees the pixels of `frame` if all waiting frames together would take more than 512 MiB.
  void spare(media::Frame& frame);
  /// Returns the frame with its pixels. Call fetch() in ascending order of frame numbers. Throws
  /// Error if the file has changed.
  media::Frame fetch(const media::Frame& freed);

 private:
  std::string path_;
  media::DecodeOptions decode_;
  double most_seconds_;
  std::optional<media::Decoder> decoder_;
  std::int64_t begin_ = 0, next_ = 0;
};

/// Decodes freed frames of one clip again, for the encoding thread.
class ClipFrames {
 public:
  /// `picture` is the part of the frame without black bars, or nullopt.
  ClipFrames(std::string path, const media::DecodeOptions& decode,
             std::optional<CroppedPicture> picture);
  /// Returns the frame with its pixels. Call fetch() in ascending order of time. Throws Error if
  /// the file has changed.
  media::Frame fetch(const media::Frame& freed);

 private:
  bool find(const media::Frame& freed, media::Frame& frame);

  std::string path_;
  media::DecodeOptions decode_;
  std::optional<CroppedPicture> picture_;
  std::optional<media::Decoder> decoder_;
};

}  // namespace vfm::clip
