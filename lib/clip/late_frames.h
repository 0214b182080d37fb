// Frames that are too large to wait in memory until their place is known.
//
// A frame waits for about a hundred others (curate::kShotLag): of 4K video that would take more
// than a gigabyte. So the samples of large frames are let go, and decoded a second time when they
// are wanted, by a decoder that follows behind. Decoding gives the same frames each time, so
// nothing else changes. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "media/decoder.h"

namespace vfm::clip {

class LateFrames {
 public:
  LateFrames(std::string path, const media::DecodeOptions& decode);

  /// Lets the samples of `frame` go if as many frames as wait would take more than 512 MiB.
  void spare(media::Frame& frame);
  /// Whether a frame lacks its samples.
  static bool is_spared(const media::Frame& frame) { return frame.plane[0] == nullptr; }
  /// The frame of the video with this number, as its Decoder gave it. Numbers only grow. Throws
  /// Error when the file no longer gives what it gave.
  media::Frame again(std::int64_t index, std::int64_t pts);

 private:
  std::string path_;
  media::DecodeOptions decode_;
  std::optional<media::Decoder> decoder_;  // opened when the first is wanted
};

}  // namespace vfm::clip
