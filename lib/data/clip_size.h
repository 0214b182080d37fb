// The sizes that a clip's pixels get: the frames that are taken, and the shape of the picture.
//
// vfm-pack decodes clips; training on clips plans by an index without decoding. Both use this rule,
// so they make equal sizes. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"

namespace vfm::data {

/// Width and height of the bucket for a picture: multiples of `multiple`, with an area of about
/// size^2 and about the picture's aspect ratio.
struct Bucket {
  int width = 0, height = 0;
};
Bucket bucket_of(int width, int height, int size, int multiple);

/// Indices of the frames to take at the rate `fps`. The k-th is the frame that shows k / fps after
/// the first, by exact arithmetic. `pts` are the timestamps of all frames in units of `base`,
/// rising. `end` is the end of the last frame. Empty if the clip is slower than `fps`: frames are
/// never repeated to fill up a rate.
std::vector<std::int64_t> sample_times(const std::vector<std::int64_t>& pts, std::int64_t end,
                                       Rational base, Rational fps);

/// The largest 1 + k * step that is at most `available` and at most `most`; 0 if there is none.
int whole_groups(std::int64_t available, int most, int step);

/// Which windows of a clip are taken. A window has whole_groups() of frames, at most `frames`.
struct WindowRule {
  int frames = 17, step = 8;
  /// Most windows of a clip: each is in the middle of its part of the clip, or at a random place of
  /// that part. 0: windows follow one another through the whole clip.
  int most = 1;
  int overlap = 0;  ///< frames that a window shares with the next; below `frames`
};
/// The most windows of one clip, whatever its container promises.
inline constexpr std::int64_t kMostWindows = 1 << 16;

/// The windows of one clip. In windows that follow one another, the frames left at the end make a
/// shorter window if it has at least half as many frames as the others.
struct WindowPlan {
  std::int64_t windows = 0;
  int frames = 0, last = 0;  ///< frames of each window; frames of the last window
  std::int64_t stride = 0;   ///< frames from one window's beginning to the next's; more if `spread`
  bool spread = false;      ///< windows need not follow one another

  std::int64_t span() const { return windows == 0 ? 0 : (windows - 1) * stride + last; }
  int frames_of(std::int64_t window) const { return window + 1 == windows ? last : frames; }
  /// The first frame of a window in a clip of `available` frames, at least span(). `place`, from 0
  /// to 1, shifts the window within the frames that are left over. Without it the window is in
  /// their middle.
  std::int64_t first_of(std::int64_t window, std::int64_t available,
                        std::optional<double> place) const;
};
WindowPlan plan_windows(std::int64_t available, const WindowRule& rule);

/// Frames of a clip, by what happens to them.
struct FrameCount {
  std::int64_t read = 0;       ///< all frames of the clip
  std::int64_t latents = 0;    ///< frames in windows
  std::int64_t rate = 0;       ///< frames that a lower rate leaves out
  std::int64_t windows = 0;    ///< frames that more windows would take
  std::int64_t remainder = 0;  ///< frames too few for a window, or for a group of a window

  void add(const FrameCount& other);
};
/// `read` is the number of all frames, `available` that of the frames at the chosen rate.
FrameCount count_frames(std::int64_t read, std::int64_t available, const WindowRule& rule);

/// The key of a window: the clip's key if the clip has one window, else KEY-w000, KEY-w001, ...
std::string window_key(const std::string& key, std::int64_t window, std::int64_t windows);
/// The number of the window with this key; nothing if it is not a window of this clip.
std::optional<int> window_of_key(std::string_view key, std::string_view clip);

/// What an index says of a clip; a field is 0 if the index does not say it.
struct ClipFacts {
  std::int64_t frames = 0;    ///< 1 for a picture
  int width = 0, height = 0;  ///< of the upright picture, pixels
  double seconds = 0, fps = 0;
};

/// How many frames sample_times() finds in this clip; all its frames if the clip is slower than
/// `fps`, or if `fps` is 0. Timestamps are rounded: if the clip ends less than a thousandth of a
/// frame after the time of a frame, that frame does not count.
std::int64_t frames_at(const ClipFacts& clip, Rational fps);

}  // namespace vfm::data
