// Frames that are too large to wait in memory until their place is known.
//
// A frame waits for about a hundred others (curate::kShotLag): of 4K video that would take more
// than a gigabyte. So the pixels of large frames are freed, and decoded a second time when they are
// needed, by a second decoder that follows. Decoding gives the same frames each time, so nothing
// else changes. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "media/decoder.h"

namespace vfm::clip {

/// What the planes of a frame take.
std::int64_t frame_bytes(const media::Frame& frame);

class LateFrames {
 public:
  /// `most_seconds`: ClipOptions::most_seconds, where the frames begin.
  LateFrames(std::string path, const media::DecodeOptions& decode, double most_seconds);

  /// Frees the pixels of `frame` if the waiting frames together would take more than 512 MiB.
  void spare(media::Frame& frame);
  /// Whether the frame's pixels were freed.
  static bool is_spared(const media::Frame& frame) { return frame.plane[0] == nullptr; }
  /// The frame of the video with this number, as its Decoder gave it. Numbers must rise from call
  /// to call. Throws Error when the file has changed meanwhile.
  media::Frame fetch(std::int64_t index, std::int64_t pts);

 private:
  std::string path_;
  media::DecodeOptions decode_;
  double most_seconds_;
  std::optional<media::Decoder> decoder_;  // opened when the first is needed
};

}  // namespace vfm::clip
