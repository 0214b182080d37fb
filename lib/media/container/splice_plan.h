// Chooses, from times alone, the packets of a source that a clip copies and the frames that must be
// encoded. media/container/splice.h joins them. Pure functions.
//
// A clip consists of a head (encoded: the frames before its first key frame), packets copied from
// the source (from that key frame on), and a tail (encoded). Packets come in decoding order, which
// is not the order of display. A frame of the clip may need a frame that is shown after the clip's
// end but decoded earlier. If that frame were copied, readers that ignore edit lists would show it.
// Copying therefore ends before the first packet shown after the clip's end. The clip's remaining
// frames are the tail: two or three frames for a source with B-frames, no frames without B-frames
// or if the clip ends at a closed key frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::media {

struct SplicePlan {
  /// Indices in `packets` of the packets to copy, in decoding order.
  std::vector<std::size_t> packets;
  /// How many of `frames`, from the first on, the copied packets show; the other frames are the
  /// tail. 0 means that no packet can be copied.
  std::size_t frames = 0;
};

/// Chooses the packets to copy. `frames` has the times (pts) of the clip's frames from the key
/// frame on, rising. `packets` has the times of packets in decoding order, from the key frame at
/// least to the first that is not before `end`, the end of the clip's last frame.
///
/// Packets shown before the key frame (an open GOP's leading pictures) are left out: later pictures
/// never need them. Copying ends before a packet whose frame is not in the clip, and early enough
/// that the copied frames have no gap.
SplicePlan plan_splice(std::span<const std::int64_t> packets, std::span<const std::int64_t> frames,
                       std::int64_t end);

/// Returns decoding times for packets that are shown at `times`, which must differ. Decoding times
/// rise. Each decoding time is as late as possible, but at most the time at which its packet is
/// shown. The first decoding time is before the first of `times` only as far as reordering demands.
std::vector<std::int64_t> decoding_times(std::span<const std::int64_t> times);

}  // namespace vfm::media
