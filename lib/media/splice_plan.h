// Which packets of a source a clip takes over as they are, and which of its frames must be encoded:
// pure functions of times. What does it is media/splice.h.
//
// A clip is its head (frames before the first key frame in it, encoded), packets of the source
// (from that key frame on, copied), and its tail. Packets come in decoding order, frames are shown
// in another. Where a clip ends between two frames, a frame behind the end may have been decoded
// before one that is in the clip and needs it: copied it would be shown, as not every reader obeys
// an edit list. So nothing is copied from the first packet on that is shown behind the end. What
// of the clip comes after it, in decoding order, is the tail: some two or three frames of a source
// with B-frames, none of one without, and none where the clip ends at a closed key frame.
//
// Everything before a place in decoding order can be decoded without what is behind that place, so
// nothing need be known of which frame refers to which.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::media {

struct SplicePlan {
  /// Places in `packets` of those that are copied, in decoding order.
  std::vector<std::size_t> packets;
  /// They show the first so many of `frames`. The others are the tail. 0: nothing can be copied.
  std::size_t frames = 0;
};

/// `frames`: the times (pts) of the clip's frames from the key frame on, each after the one before.
/// `packets`: the times of packets in decoding order, the first that of the key frame, up to the
/// first that is not before `end`; more do no harm. `end`: when the clip's last frame is over.
///
/// Packets shown before the key frame (an open GOP's leading pictures) are left out: what is shown
/// after it never needs them. Copying ends before a packet whose frame is not in the clip, and so
/// early that the copied frames follow each other without a gap.
SplicePlan plan_splice(std::span<const std::int64_t> packets, std::span<const std::int64_t> frames,
                       std::int64_t end);

/// Decoding times for packets that are shown at `times`: each after the one before, none later than
/// its packet is shown, as late as possible; below the first time shown by as much as the order of
/// decoding demands, and so no earlier if none is reordered. Two equal times give no such answer:
/// `times` must differ.
std::vector<std::int64_t> decoding_times(std::span<const std::int64_t> times);

}  // namespace vfm::media
