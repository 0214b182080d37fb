// Computes vectors of a clip's windows, in addition to the clip's own vector.
//
// A clip of F frames and S seconds (by its rate) has W = S / `seconds` windows, rounded up, at
// least 1, at most kMostClipWindows and F. Window k has frames k F / W to before (k + 1) F / W.
// Windows are longer than `seconds` only if there are kMostClipWindows. The vector of a window is
// computed from its frames by the rule for whole clips (columns/embed/clip_vector.h). The clip is
// decoded once, and frames are encoded as they come: memory does not grow with the length.
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

/// Returns the number of windows, W.
std::int64_t count_clip_windows(std::int64_t frames, double fps, double seconds);

/// A frame that is encoded for a window.
struct WindowFrame {
  std::int64_t number = 0;  ///< index in the clip
  std::int64_t window = 0;
  bool operator==(const WindowFrame&) const = default;
};
/// Returns `count` frames of each window, ascending, by the rule of plan_clip_frames().
std::vector<WindowFrame> plan_window_frames(std::int64_t frames, std::int64_t windows, int count);

struct WindowedClip {
  HeldJson facts;              ///< result of take_frames()
  std::vector<double> begins;  ///< each window's begin, in seconds from the clip's first frame
};

/// Adds a clip with its windows to `vectors`. Throws what take_frames() throws, and then adds
/// nothing.
WindowedClip take_clip_windows(const shard::Member& member, const std::string& where,
                               const Json& known, const models::PictureEncoder& encoder, int count,
                               double seconds, const media::HardwareDecoder* hardware,
                               ClipVectors& vectors);

/// Returns {"seconds": 5, "frames": 8, "begin": [0, 4.8]}, for KEY.json.
Json clip_windows_json(double seconds, int count, const std::vector<double>& begins);

}  // namespace vfm::columns
