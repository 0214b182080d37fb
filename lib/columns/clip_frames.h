// Takes frames of a clip by their numbers. The clip is decoded once, and facts that its json lacks
// are counted on the way. Thread-safety: any thread.
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
  /// Gets the number of the clip's frames, at least 1; a still picture has one. Returns the number
  /// of the last frame wanted. It is called again, with fewer, if the container promised more than
  /// decode: frames taken so far are void.
  virtual std::int64_t begin(std::int64_t frames, double fps) = 0;
  /// Gets each frame from 0 to that one. It must not keep them (media::FrameUse::glance).
  virtual void take(std::int64_t number, const media::Frame& frame,
                    const media::StreamInfo& info) = 0;
  /// Even fewer frames decoded: frames taken so far are void.
  virtual void give_up() = 0;
};

/// Scales a whole frame as it is shown: upright, in square pixels.
media::ScaleOptions as_shown(const media::StreamInfo& info);

/// The begin of part k of n equal parts of `frames`, k at most n: k frames / n, rounded down,
/// without overflow for any number of frames.
std::int64_t part_begin(std::int64_t frames, std::int64_t n, std::int64_t k);

/// The middles of `count` equal parts of `frames`, at least 1: numbers, ascending, each once.
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

/// Takes frames of a sample's member. Returns the facts that its json, `known`, lacks: "width" and
/// "height" as shown, and for a video "seconds", "fps" and "frames", from all frames. Throws Error,
/// naming `where` ("KEY.mp4 of 'x.tar'"), if nothing of it can be decoded. `hardware` decodes it,
/// with the same result; null: software.
Json take_frames(const shard::Member& member, const std::string& where, const Json& known,
                 const media::HardwareDecoder* hardware, FrameTaker& taker);

/// The same for a file or URL.
void take_file_frames(const std::string& path, const media::HardwareDecoder* hardware,
                      FrameTaker& taker);

}  // namespace vfm::columns
