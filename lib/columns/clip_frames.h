// Takes numbered frames of a clip. The clip is decoded once; facts that its json lacks are measured
// in the same pass. Thread-safety: any thread.
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

/// Receives frames of one clip.
class FrameTaker {
 public:
  virtual ~FrameTaker() = default;
  /// Returns the number of the last frame wanted. `frames`: the number of the clip's frames, which
  /// is 1 for a still picture. If fewer frames decode than the container promised, begin() is
  /// called again with their count, and frames taken so far are void.
  virtual std::int64_t begin(std::int64_t frames, double fps) = 0;
  /// Receives each frame from 0 to the last frame wanted. take() must not keep the frames
  /// (media::FrameUse::glance).
  virtual void take(std::int64_t number, const media::Frame& frame,
                    const media::StreamInfo& info) = 0;
  /// Called if fewer frames decode than the second call of begin() promised. Frames taken so far
  /// are void.
  virtual void give_up() = 0;
};

/// Returns options that scale a whole frame to the shape shown: upright, square pixels.
media::ScaleOptions as_shown(const media::StreamInfo& info);

/// Returns the begin of part k of n equal parts of `frames`: k * frames / n, rounded down, without
/// overflow. k must be at most n.
std::int64_t part_begin(std::int64_t frames, std::int64_t n, std::int64_t k);

/// Returns the numbers of the frames in the middle of `count` equal parts of `frames` (both at
/// least 1), ascending, without duplicates.
std::vector<std::int64_t> plan_clip_frames(std::int64_t frames, int count);

/// Takes the frames of plan_clip_frames().
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
/// "width" and "height" as shown, and for a video also "seconds", "fps" and "frames", measured over
/// all frames. Without `hardware`, software decodes, with the same result. Throws Error, which
/// names `where` ("KEY.mp4 of 'x.tar'"), if nothing decodes.
Json take_frames(const shard::Member& member, const std::string& where, const Json& known,
                 const media::HardwareDecoder* hardware, FrameTaker& taker);

/// Takes frames of a file or URL as take_frames() does.
void take_file_frames(const std::string& path, const media::HardwareDecoder* hardware,
                      FrameTaker& taker);

}  // namespace vfm::columns
