// Chooses by time which packets of a source a clip copies, and which frames must be encoded. Pure
// functions.
//
// A clip has an encoded head before its first key frame, copied packets from this key frame on, and
// an encoded tail. The tail has two or three frames for a source with B-frames. The tail is empty
// for other sources, or if the clip ends at a closed key frame.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::media {

struct SplicePlan {
  /// The packets to copy in decoding order, as indices of the argument `packets`.
  std::vector<std::size_t> packets;
  /// The number of frames of the clip, from the key frame on, that the copied packets show. 0
  /// means that no packet can be copied.
  std::size_t frames = 0;
};

/// Chooses the packets to copy. `frames` has the rising times of the frames of the clip from the
/// key frame on. `packets` has the times of packets in decoding order. It begins with the key
/// frame, and has at least the first packet at or after `end`. The last frame of the clip ends at
/// `end`.
///
/// Packets shown before the key frame are not copied. Copying ends before the first packet whose
/// frame is not in the clip, or earlier if the copied frames would have a gap.
SplicePlan plan_splice(std::span<const std::int64_t> packets, std::span<const std::int64_t> frames,
                       std::int64_t end);

/// Returns rising decoding times for packets that are shown at `times`, which must differ. Each
/// decoding time is as late as possible, but not after the time at which its packet is shown.
std::vector<std::int64_t> decoding_times(std::span<const std::int64_t> times);

}  // namespace vfm::media
