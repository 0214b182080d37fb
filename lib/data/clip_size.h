// The sizes that a clip's pixels get: which frames are taken of it, and the shape of the picture.
//
// One rule for those who decode a clip and for those who plan by what an index says of it, without
// decoding: vfm-pack and training on clips make equal sizes. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"

namespace vfm::data {

/// Width and height of the bucket for a picture: multiples of `multiple`, area about size^2, shape
/// about that of the picture.
struct Bucket {
  int width = 0, height = 0;
};
Bucket bucket_of(int width, int height, int size, int multiple);

/// Indices of the frames to take: by time, exactly, at the rate `fps`. `pts` are all frames'
/// timestamps in units of `base`, rising, `end` that of the end of the last frame. The k-th is the
/// one that shows k / fps after the first. Empty if the clip is slower than `fps`: frames are never
/// repeated to fill up a rate.
std::vector<std::int64_t> sample_times(const std::vector<std::int64_t>& pts, std::int64_t end,
                                       Rational base, Rational fps);

/// The largest 1 + k * step that is at most `available` and at most `most`; 0 if that is nothing.
int whole_groups(std::int64_t available, int most, int step);

/// Which windows of a clip are taken: each has whole_groups() of frames, at most `frames`.
struct WindowRule {
  int frames = 17, step = 8;
  /// At most so many, each in the middle of its part of the clip, or at a random place of it; 0: as
  /// many as follow one another.
  int most = 1;
  int overlap = 0;  ///< frames that one has in common with the next, below `frames`
};
/// Of one clip, whatever its container promises.
inline constexpr std::int64_t kMostWindows = 1 << 16;

/// The windows of a clip of so many frames. Where they follow one another, what is left at the end
/// is a shorter one if it has at least half as many frames.
struct WindowPlan {
  std::int64_t windows = 0;
  int frames = 0, last = 0;  ///< of each; of the last one
  std::int64_t stride = 0;   ///< from the beginning of one to that of the next, at least
  bool spread = false;       ///< they need not follow one another

  std::int64_t span() const { return windows == 0 ? 0 : (windows - 1) * stride + last; }
  int frames_of(std::int64_t window) const { return window + 1 == windows ? last : frames; }
  /// The first frame of a window, where the clip has `available` of them, at least span(). `place`
  /// is where in what is left over, from 0 to 1; none: in the middle.
  std::int64_t first_of(std::int64_t window, std::int64_t available,
                        std::optional<double> place) const;
};
WindowPlan plan_windows(std::int64_t available, const WindowRule& rule);

/// What becomes of a clip's frames.
struct FrameCount {
  std::int64_t read = 0;       ///< all that there are
  std::int64_t latents = 0;    ///< are in windows
  std::int64_t rate = 0;       ///< are between those that are taken at a lower rate
  std::int64_t windows = 0;    ///< would be in windows, if more of these were asked for
  std::int64_t remainder = 0;  ///< are too few for a window, or for a group of one

  void add(const FrameCount& other);
};
/// Of `read` frames `available` are there at the rate that is asked for.
FrameCount count_frames(std::int64_t read, std::int64_t available, const WindowRule& rule);

/// The key of what is made of a window: the clip's where it has one only, else KEY-w000, KEY-w001.
std::string window_key(const std::string& key, std::int64_t window, std::int64_t windows);
/// The number of the window that has this key, if it is one of the clip's.
std::optional<int> window_of_key(std::string_view key, std::string_view clip);

/// What an index says of a clip. 0: it does not.
struct ClipFacts {
  std::int64_t frames = 0;    ///< 1 of a picture
  int width = 0, height = 0;  ///< as it is shown, pixels
  double seconds = 0, fps = 0;
};

/// How many frames sample_times() finds in a clip of so many, that lasts so long; all, if the clip
/// is slower than `fps`, or that is 0. Of a clip that ends less than a thousandth of a frame after
/// one of these times that one counts as not there, as rounded timestamps have it.
std::int64_t frames_at(const ClipFacts& clip, Rational fps);

}  // namespace vfm::data
