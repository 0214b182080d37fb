// Reads the packets of a source's video, to copy them into clips without decoding. The source is
// read separately from its Decoder. Packets have the times of the Decoder's frames.
//
// Memory holds the packets from the last requested key frame to the last requested end. A call
// without progress for input_limits().timeout throws Error{Cause::timeout}, as in Decoder. This
// class ignores --isolate: this process reads everything.
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
  CodedVideo video;        ///< empty: no part can be copied
  std::size_t frames = 0;  ///< number of frames that `video` shows, from the key frame on
  std::string reason;      ///< why `video` is empty
};

class SourcePackets {
 public:
  /// Opens a path or URL as Decoder does; `stream`: StreamInfo::stream. Throws Error.
  SourcePackets(const std::string& path, int stream);
  ~SourcePackets();

  /// Returns the reason why no packet of this source can be copied into any clip, or "" if copying
  /// may be possible.
  std::string refusal() const;
  SpliceKind kind() const;

  /// Returns the time of the first key frame at or after `begin` where copying can begin, if any.
  /// The call is quick if `begin` is at least the last call's `begin`; otherwise, the source is
  /// read again from an earlier place. Throws Error if the source cannot be read.
  std::optional<std::int64_t> key_from(std::int64_t begin);
  /// Returns the packets that media/container/splice_plan.h chooses for `frames`, the times of a
  /// clip's frames from `key` on. `key`: the last result of key_from(). `end`: the end of the last
  /// frame. Throws Error.
  CopiedVideo copy(std::int64_t key, std::span<const std::int64_t> frames, std::int64_t end);

 private:
  struct State;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace vfm::media
