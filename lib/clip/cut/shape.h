// Sizes and frame rates of clips for --scale and --fps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rational.h"
#include "media/frame.h"

namespace vfm::clip {

/// The size that clips are scaled to. If all are zero, it is the source's size.
struct ClipSize {
  int width = 0, height = 0;  ///< one may be -2: computed from the picture's shape, even
  int short_side = 0;         ///< in place of both: the shorter side; the longer is even

  bool any() const { return width != 0 || short_side != 0; }
  std::string text() const;  ///< "640x-2", "short:480"
  /// Returns the size for a picture that is shown as `width` x `height` square pixels.
  std::pair<int, int> of(int width, int height) const;
};

/// Parses "640x480", "640x-2", "-2x480" or "short:480". Throws Error{usage}.
ClipSize parse_clip_size(std::string_view text);

/// Parses "24", "12.5", "23.976" or "30000/1001"; the decimal of a broadcast rate becomes n/1001.
/// Throws Error{usage} for an impossible rate.
Rational parse_clip_rate(std::string_view text);

/// Converts any frame rate to a constant one. Frame k of the result is the frame on screen k / rate
/// seconds after the first one, and lasts 1 / rate. The number of frames is the clip's length *
/// rate, rounded, at least one. Frames are left out or repeated, never blended.
class FrameClock {
 public:
  /// `base`: time base of the input. The result's time base is 1 / rate, its first pts 0.
  FrameClock(Rational rate, Rational base) : rate_(rate), base_(base) {}
  Rational time_base() const { return {rate_.den, rate_.num}; }
  /// Returns the result's frames that are certain now, in order. `frame.duration` must be right.
  std::vector<media::Frame> push(const media::Frame& frame);

 private:
  int compare(std::int64_t ticks, std::int64_t half_frames) const;

  Rational rate_, base_;
  std::optional<std::int64_t> first_;    // pts
  std::int64_t next_ = 0;                // number of the result's next frame
  std::optional<media::Frame> waiting_;  // frame next_ - 1, used only if the clip is long enough
};

}  // namespace vfm::clip
