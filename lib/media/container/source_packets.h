// Reads video packets of a source, to copy them into clips without decoding. The times of packets
// are those of Frame::pts.
//
// A SourcePackets keeps in memory the packets from the last requested key frame to the last
// requested end. A call without progress for input_limits().timeout throws Error{Cause::timeout}.
// --isolate has no effect on this class. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "media/container/splice.h"

namespace vfm::media {

/// The part of a clip that is copied from the source.
struct CopiedVideo {
  CodedVideo video;        ///< Copied packets; empty if no part can be copied.
  std::size_t frames = 0;  ///< Number of frames in `video`.
  std::string reason;      ///< Reason why `video` is empty.
};

class SourcePackets {
 public:
  /// Opens a path or URL as Decoder does. `stream` is StreamInfo::stream. Throws Error.
  SourcePackets(const std::string& path, int stream);
  ~SourcePackets();

  /// Returns the reason why no packet of this source can be copied into any clip, or "" if copying
  /// may be possible.
  std::string refusal() const;
  SpliceKind kind() const;

  /// Returns the time of the first key frame at or after `begin` where copying can begin, or
  /// nullopt. The call is slow if `begin` is before the `begin` of the previous call. Throws Error
  /// if the source cannot be read.
  std::optional<std::int64_t> key_from(std::int64_t begin);
  /// Returns the packets that plan_splice() (splice_plan.h) chooses. `key` is the last result of
  /// key_from(), `frames` has the times of the frames of the clip from `key` on, and `end` is the
  /// end of the last frame. Throws Error.
  CopiedVideo copy(std::int64_t key, std::span<const std::int64_t> frames, std::int64_t end);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
