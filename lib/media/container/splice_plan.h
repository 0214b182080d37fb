// Chooses the packets of a source that a clip copies, and the frames that must be encoded, by pure
// functions of times. media/container/splice.h joins them.
//
// A clip is its head (frames before the first key frame in it, encoded), packets of the source
// (from that key frame on, copied), and its tail. Packets come in decoding order, frames are shown
// in another. A frame behind the clip's end may be decoded before a frame of the clip that needs
// it: if copied, it would be shown, since not every reader obeys edit lists. So copying ends at the
// first packet shown behind the end. The clip's frames after it, in decoding order, are the tail:
// two or three for a source with B-frames, none without B-frames or if the clip ends at a closed
// key frame.
//
// Packets can be decoded without later packets in decoding order, so references between frames need
// not be known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::media {

struct SplicePlan {
  /// Indices in `packets` of the copied ones, in decoding order.
  std::vector<std::size_t> packets;
  /// The number of `frames`, from the first, that they show. The others are the tail. 0: nothing
  /// can be copied.
  std::size_t frames = 0;
};

/// `frames`: the times (pts) of the clip's frames from the key frame on, rising. `packets`: the
/// times of packets in decoding order, from the key frame's up to the first not before `end`, or
/// more. `end`: the end of the clip's last frame.
///
/// Packets shown before the key frame (an open GOP's leading pictures) are left out: pictures after
/// it never need them. Copying ends before a packet whose frame is not in the clip, and early
/// enough that the copied frames have no gap.
SplicePlan plan_splice(std::span<const std::int64_t> packets, std::span<const std::int64_t> frames,
                       std::int64_t end);

/// Decoding times for packets that are shown at `times`: rising, as late as possible, but none
/// later than its packet is shown. They begin before the first time shown only as far as reordering
/// demands. `times` must differ.
std::vector<std::int64_t> decoding_times(std::span<const std::int64_t> times);

}  // namespace vfm::media
