// Joins a clip from packets of an Encoder and unchanged packets of the source.
//
// A decoder must not confuse the encoder's headers and the source's. For H.264 and HEVC, the mp4's
// header (avc1, hvc1) has the parameter sets of both, and packets have none. The encoder's
// parameter sets have a number of their own. A key frame of VP9 or AV1 resets the decoder; in AV1
// each key frame has its sequence header.
//
// media/container/splice_plan.h chooses the packets, media/container/source_packets.h reads them.
// Thread-safety: threads may share values, and any thread may call each function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "media/frame.h"
#include "media/sound/audio.h"

namespace vfm::media {

/// Coded pictures in decoding order, with their times in the source, and the parameters for a
/// decoder. Cheap to copy.
class CodedVideo {
 public:
  struct Data;  // FFmpeg's types, media/container/mux.h
  CodedVideo() = default;
  explicit CodedVideo(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  bool empty() const { return !data_; }
  std::uint64_t bytes() const;  ///< of the packets
  const Data* data() const { return data_.get(); }

 private:
  std::shared_ptr<const Data> data_;
};

/// Returns FFmpeg's name of the encoder whose pictures can be joined with a source's pictures in
/// this codec ("h264", "hevc", "vp9", "av1"). Returns "" if no such encoder is known, or if this
/// FFmpeg lacks it.
std::string splice_encoder(const std::string& codec);

/// Properties of a source's packets that the encoder must match, for EncodeOptions.
struct SpliceKind {
  int profile = -99, level = -99;  ///< FFmpeg's numbers; -99: unknown
};

/// Returns "" if `copied` and `encoded` can be joined, otherwise the reason. Decodes the first
/// picture of `copied`, which must equal `frame`. The pictures of `encoded` (may be empty) must
/// have the same size, pixel format and colours.
std::string check_splice(const CodedVideo& copied, const Frame& frame, const CodedVideo& encoded);

/// Returns the mp4 of a clip: `head` (may be empty), `copied` and `tail` (may be empty), one after
/// the other. Their times, in the source's time base, must differ and be in this order. The first
/// time becomes zero, and the clip ends at `end`. Throws Error.
std::string splice_mp4(const CodedVideo& head, const CodedVideo& copied, const CodedVideo& tail,
                       std::int64_t end, const AudioTrack& audio);

}  // namespace vfm::media
