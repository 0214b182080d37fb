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

/// The size of clips, or zeros for the source's size.
struct ClipSize {
  /// Size in pixels. One side may be -2, which means an even side that fits the shape of the
  /// picture.
  int width = 0, height = 0;
  /// If above 0, the length of the shorter side in pixels, which replaces `width` and `height`. The
  /// longer side is even.
  int short_side = 0;

  bool any() const { return width != 0 || short_side != 0; }
  std::string text() const;  ///< Returns a text such as "640x-2" or "short:480".
  /// Returns the size for a picture that is shown as `width` x `height` square pixels.
  std::pair<int, int> of(int width, int height) const;
};

/// Parses "640x480", "640x-2", "-2x480" or "short:480". Throws Error{usage}.
ClipSize parse_clip_size(std::string_view text);

/// Parses "24", "12.5", "23.976" or "30000/1001". A broadcast rate such as "23.976" becomes a
/// fraction such as 24000/1001. Throws Error{usage} for an impossible rate.
Rational parse_clip_rate(std::string_view text);

/// Converts any frame rate to a constant frame rate. Frames are left out or repeated, never
/// blended. Each output frame is a copy of the input frame that is shown at the same time. The
/// length of the output is the clip's length, rounded to whole frames. The output has at least one
/// frame.
class FrameClock {
 public:
  /// Makes a clock from the output's frame rate and the input's time base. The output's first pts
  /// is 0.
  FrameClock(Rational rate, Rational base) : rate_(rate), base_(base) {}
  Rational time_base() const { return {rate_.den, rate_.num}; }
  /// Adds an input frame, whose duration must be right. Returns the output frames that are
  /// complete, in order.
  std::vector<media::Frame> push(const media::Frame& frame);

 private:
  int compare(std::int64_t ticks, std::int64_t half_frames) const;

  Rational rate_, base_;
  std::optional<std::int64_t> first_;
  std::int64_t next_ = 0;
  std::optional<media::Frame> waiting_;
};

}  // namespace vfm::clip
