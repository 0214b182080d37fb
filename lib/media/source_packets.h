// The packets of a source's video, to be copied into clips. The source is read a second time beside
// its Decoder, packet by packet, and nothing is decoded; times are the Decoder's.
//
// Held in memory: the packets from the key frame that was asked for last, to the end that was.
// A call that gets no further for input_limits().timeout throws Error{Cause::timeout}, as Decoder's
// do. There is no form of it for --isolate: all is read in this process.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "media/splice.h"

namespace vfm::media {

/// What of a clip can be copied.
struct CopiedVideo {
  CodedVideo video;        ///< empty: nothing can
  std::size_t frames = 0;  ///< it shows the first so many frames from the key frame on
  std::string reason;      ///< why nothing can; else empty
};

class SourcePackets {
 public:
  /// Opens a path or URL as Decoder does; `stream` is Decoder's. Throws Error.
  SourcePackets(const std::string& path, int stream);
  ~SourcePackets();

  /// Why nothing of this source can be copied, whatever the clip; empty: something may.
  std::string refusal() const;
  SpliceKind kind() const;

  /// The time of the first key frame at or after `begin` where copying can begin; none: there is no
  /// such. Quick where `begin` is not before the one asked for last; else reads from an earlier
  /// place again. Throws Error where the source cannot be read.
  std::optional<std::int64_t> key_from(std::int64_t begin);
  /// What shows `frames`, the times of a clip's frames from `key` on, as media/splice_plan.h says.
  /// `key`: what key_from() has returned last. `end`: when the last frame is over. Throws Error.
  CopiedVideo copy(std::int64_t key, std::span<const std::int64_t> frames, std::int64_t end);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
