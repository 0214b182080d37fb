// Takes numbered frames of a clip, and measures facts that the clip's json lacks. The clip is
// decoded once. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"
#include "media/decode/hardware.h"
#include "shard/sample.h"

namespace vfm::columns {

class FrameTaker {
 public:
  virtual ~FrameTaker() = default;
  /// Returns the index of the last frame wanted. `frames` is the number of frames of the clip, or 1
  /// for a still picture. If fewer frames decode than the container promised, begin() is called
  /// again with the right number. The receiver must then discard the frames taken before.
  virtual std::int64_t begin(std::int64_t frames, double fps) = 0;
  /// Receives the frames in order, from frame 0 to the last frame wanted. The receiver must not
  /// keep the frames (media::FrameUse::glance).
  virtual void take(std::int64_t number, const media::Frame& frame,
                    const media::StreamInfo& info) = 0;
  /// Discards the frames taken before. Called if fewer frames decode than the second begin() was
  /// told.
  virtual void give_up() = 0;
};

/// Returns options that rotate, mirror and scale a frame as a player shows it, with square pixels.
media::ScaleOptions as_shown(const media::StreamInfo& info);

/// Returns k * frames / n, rounded down: the first frame of part k, if `frames` frames are cut into
/// n equal parts. k must be at most n.
std::int64_t part_begin(std::int64_t frames, std::int64_t n, std::int64_t k);

/// Cuts `frames` frames into `count` equal parts, and returns the number of each part's middle
/// frame, ascending, without duplicates. Both arguments must be at least 1.
std::vector<std::int64_t> plan_clip_frames(std::int64_t frames, int count);

/// A receiver of the frames of plan_clip_frames().
class MiddleFrames : public FrameTaker {
 public:
  explicit MiddleFrames(int count) : count_(count) {}
  std::int64_t begin(std::int64_t frames, double fps) final;
  void take(std::int64_t number, const media::Frame& frame, const media::StreamInfo& info) final;
  void give_up() final { clear(); }

 private:
  virtual void use(const media::Frame& frame, const media::StreamInfo& info) = 0;
  virtual void clear() = 0;

  int count_;
  std::vector<std::int64_t> plan_;
  std::size_t next_ = 0;
};

/// Takes frames of a sample's member. Returns the facts that the sample's json `known` lacks:
/// "width" and "height" as shown, and for a video "seconds", "fps" and "frames". If `hardware` is
/// null, the clip is decoded in software, with the same result. Throws Error, which names `where`
/// ("KEY.mp4 of 'x.tar'"), if no frame decodes.
Json take_frames(const shard::Member& member, const std::string& where, const Json& known,
                 const media::HardwareDecoder* hardware, FrameTaker& taker);

/// Takes frames of a file or URL.
void take_file_frames(const std::string& path, const media::HardwareDecoder* hardware,
                      FrameTaker& taker);

}  // namespace vfm::columns
