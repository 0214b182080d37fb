// Joins a clip from coded pieces: packets of an Encoder and unchanged packets of the source.
//
// Decoders must not confuse the pieces. For H.264 and HEVC both kinds of parameter sets are in the
// mp4's header (avc1, hvc1), the encoder's under a separate number; readers need no parameter sets
// in the packets, and no order of them. A key frame of VP9 or AV1 resets the decoder; for AV1 each
// brings its sequence header.
//
// media/container/splice_plan.h chooses the packets, media/container/source_packets.h reads them.
// Thread-safety: values may be shared, each function may be called from any thread.
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

/// Coded pictures in decoding order, with their times in the source, and the decoder's parameters.
/// Cheap to copy.
class CodedVideo {
 public:
  struct Data;  // FFmpeg's types, media/container/mux.h
  CodedVideo() = default;
  explicit CodedVideo(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  bool empty() const { return !data_; }
  std::uint64_t bytes() const;  ///< of its packets
  const Data* data() const { return data_.get(); }

 private:
  std::shared_ptr<const Data> data_;
};

/// The encoder whose pictures can stand beside a source's of this codec (FFmpeg's name: "h264",
/// "hevc", "vp9", "av1"), by FFmpeg's name; empty: none is known, or this FFmpeg does not have it.
std::string splice_encoder(const std::string& codec);

/// Properties of a source's packets, for EncodeOptions, so that the encoder's pictures match.
struct SpliceKind {
  int profile = -99, level = -99;  ///< FFmpeg's numbers; -99: not said
};

/// Why a decoder of `copied` alone would not show exactly `frame` first, or why the pictures of
/// `encoded` (may be empty) differ in size, pixels or colours. Empty: all fits. Decodes the first
/// picture of `copied`.
std::string check_splice(const CodedVideo& copied, const Frame& frame, const CodedVideo& encoded);

/// The mp4 of a clip: `head`, `copied` and `tail`, one after the other; the first and the last may
/// be empty. Their times, which must all differ and follow each other, are in the source's
/// time base; the first becomes zero, and the clip is over at `end`. Throws Error.
std::string splice_mp4(const CodedVideo& head, const CodedVideo& copied, const CodedVideo& tail,
                       std::int64_t end, const AudioTrack& audio);

}  // namespace vfm::media
