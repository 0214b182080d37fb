// Some of the frames of a clip, by their numbers: it is decoded once, and what its json lacks is
// counted on the way. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "media/decoder.h"
#include "media/hardware.h"
#include "media/scaler.h"
#include "shard/sample.h"

namespace vfm::columns {

/// Who wants frames of one clip.
class FrameTaker {
 public:
  virtual ~FrameTaker() = default;
  /// The clip has so many frames, at least 1, a still picture one. Returns the number of the last
  /// one that is wanted. Called anew, with fewer, if the container promised more than decode: what
  /// was taken is void.
  virtual std::int64_t begin(std::int64_t frames, double fps) = 0;
  /// Each frame up to that one, from 0 on; to be looked at, not to be kept
  /// (media::FrameUse::glance).
  virtual void take(std::int64_t number, const media::Frame& frame,
                    const media::StreamInfo& info) = 0;
  /// Even then there were fewer: what was taken is void.
  virtual void give_up() = 0;
};

/// The whole of a frame as it is shown: upright, in square pixels.
media::ScaleOptions as_shown(const media::StreamInfo& info);

/// Where part k of n equal ones of `frames` begins, k at most n: k frames / n, rounded down,
/// whatever number of frames a container promises.
std::int64_t part_begin(std::int64_t frames, std::int64_t n, std::int64_t k);

/// The middles of `count` equal parts of `frames`, at least 1: numbers, ascending, each once.
std::vector<std::int64_t> plan_clip_frames(std::int64_t frames, int count);

/// Wants those of plan_clip_frames().
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

/// Of a sample's member. Returns the facts that its json, `known`, lacks: "width" and "height" as
/// shown, and of a video "seconds", "fps" and "frames", all of them counted. Throws Error, naming
/// `where` ("KEY.mp4 of 'x.tar'"), if nothing of it can be decoded. `hardware` decodes it, with the
/// same result; null: software.
Json take_frames(const shard::Member& member, const std::string& where, const Json& known,
                 const media::HardwareDecoder* hardware, FrameTaker& taker);

/// Of a file or URL.
void take_file_frames(const std::string& path, const media::HardwareDecoder* hardware,
                      FrameTaker& taker);

}  // namespace vfm::columns
