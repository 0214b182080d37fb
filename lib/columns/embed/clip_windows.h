// Computes a vector for each window of a clip, besides the clip's vector.
//
// A clip of F frames and S seconds has W = S / `seconds` windows, rounded up. W is at least 1, at
// most F, and at most kMostClipWindows. Window k has the frames from k F / W to before (k + 1) F /
// W. The vector of a window is computed from the window's frames by the rule for clips
// (columns/embed/clip_vector.h). The clip is decoded once. Memory does not grow with the clip's
// length.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "columns/embed/clip_vector.h"
#include "media/decode/hardware.h"
#include "models/encoder/picture_encoder.h"
#include "shard/sample.h"

namespace vfm::columns {

inline constexpr std::int64_t kMostClipWindows = 1024;

/// Returns the number of windows W.
std::int64_t count_clip_windows(std::int64_t frames, double fps, double seconds);

/// A frame that is encoded for a window.
struct WindowFrame {
  std::int64_t number = 0;  ///< Index of the frame in the clip.
  std::int64_t window = 0;
  bool operator==(const WindowFrame&) const = default;
};
/// Returns `count` frames of each window, ascending, by the rule of plan_clip_frames().
std::vector<WindowFrame> plan_window_frames(std::int64_t frames, std::int64_t windows, int count);

struct WindowedClip {
  HeldJson facts;              ///< Result of take_frames().
  std::vector<double> begins;  ///< Begin of each window, in seconds from the clip's first frame.
};

/// Adds a clip and its windows to `vectors`. Throws what take_frames() throws. After an exception
/// nothing is added.
WindowedClip take_clip_windows(const shard::Member& member, const std::string& where,
                               const Json& known, const models::PictureEncoder& encoder, int count,
                               double seconds, const media::HardwareDecoder* hardware,
                               ClipVectors& vectors);

/// Returns the value of "video_windows" in KEY.json, such as {"seconds": 5, "frames": 8, "begin":
/// [0, 4.8]}.
Json clip_windows_json(double seconds, int count, const std::vector<double>& begins);

}  // namespace vfm::columns
