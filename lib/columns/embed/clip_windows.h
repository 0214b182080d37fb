// The vectors of a clip's windows, beside the clip's own: for clips so long that one vector says
// little.
//
// A clip of F frames, S seconds by its rate, has W = S / `seconds` windows, rounded up, at least 1
// and at most kMostClipWindows or F: window k has the frames from k F / W to (k + 1) F / W. So all
// are equally long, to a frame, and none is longer than `seconds` unless kMostClipWindows limits W.
// A window's vector is made from its frames as a clip's is from all (columns/embed/clip_vector.h).
// The clip is decoded once, and frames are encoded as they come: memory does not grow with them.
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

/// W.
std::int64_t count_clip_windows(std::int64_t frames, double fps, double seconds);

/// A frame that is encoded for a window.
struct WindowFrame {
  std::int64_t number = 0;  ///< in the clip
  std::int64_t window = 0;
  bool operator==(const WindowFrame&) const = default;
};
/// `count` frames of each window, ascending, chosen as plan_clip_frames() does for a clip.
std::vector<WindowFrame> plan_window_frames(std::int64_t frames, std::int64_t windows, int count);

struct WindowedClip {
  HeldJson facts;              ///< as take_frames() returns them
  std::vector<double> begins;  ///< of each window, in seconds from the clip's first frame
};

/// Adds a clip with its windows to `vectors`. Throws what take_frames() throws; then it adds none.
WindowedClip take_clip_windows(const shard::Member& member, const std::string& where,
                               const Json& known, const models::PictureEncoder& encoder, int count,
                               double seconds, const media::HardwareDecoder* hardware,
                               ClipVectors& vectors);

/// {"seconds": 5, "frames": 8, "begin": [0, 4.8]}, for KEY.json.
Json clip_windows_json(double seconds, int count, const std::vector<double>& begins);

}  // namespace vfm::columns
