// The packets of a source's video, to be copied into clips. The source is read a second time beside
// its Decoder, packet by packet, and nothing is decoded; times are the Decoder's.
//
// Memory holds the packets from the last requested key frame to the last requested end. A call
// without progress for input_limits().timeout throws Error{Cause::timeout}, as in Decoder. It
// ignores --isolate: this process reads all.
// Thread-safety: one thread at a time.
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

/// The part of a clip that can be copied.
struct CopiedVideo {
  CodedVideo video;        ///< empty: none
  std::size_t frames = 0;  ///< number of frames that it shows, from the key frame on
  std::string reason;      ///< why none; else empty
};

class SourcePackets {
 public:
  /// Opens a path or URL as Decoder does; `stream` is Decoder's. Throws Error.
  SourcePackets(const std::string& path, int stream);
  ~SourcePackets();

  /// Why no part of this source can be copied, for any clip; empty: a part may be.
  std::string refusal() const;
  SpliceKind kind() const;

  /// The time of the first key frame at or after `begin` where copying can begin; none: there is
  /// none. Quick if `begin` is not before the last one; else reads again from an earlier place.
  /// Throws Error where the source cannot be read.
  std::optional<std::int64_t> key_from(std::int64_t begin);
  /// The packets for `frames`, the times of a clip's frames from `key` on, by
  /// media/container/splice_plan.h. `key`: the last result of key_from(). `end`: the end of the
  /// last frame. Throws Error.
  CopiedVideo copy(std::int64_t key, std::span<const std::int64_t> frames, std::int64_t end);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
