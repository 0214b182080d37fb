// A clip of coded pieces: what an Encoder made, beside packets of the source as they are.
//
// For which codecs this works, and how decoders are kept from confusing the pieces: of H.264 and
// HEVC both kinds of parameter sets stand in the mp4's header (avc1, hvc1), those of what was
// encoded under a number of their own; readers need nothing in the packets, nor an order of them.
// A key frame of VP9 or AV1 begins afresh; each of AV1 has its sequence header with it.
//
// Not here: which packets (media/splice_plan.h), and where they come from (media/source_packets.h).
// Thread-safety: values may be shared, each function may be called from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "media/audio.h"
#include "media/frame.h"

namespace vfm::media {

/// Coded pictures in decoding order, with their times in the source, and what a decoder needs to
/// know before the first. Cheap to copy.
class CodedVideo {
 public:
  struct Data;  // FFmpeg's types, media/mux.h
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

/// What a source's packets are, for EncodeOptions: pictures beside them are made alike.
struct SpliceKind {
  int profile = -99, level = -99;  ///< FFmpeg's numbers; -99: not said
};

/// Why a decoder that has nothing but `copied` would not show `frame` first, to the bit; or would
/// take the pictures of `encoded` (may be empty) for others in size, pixels or colours. Empty: it
/// does, and would not. Decodes the first picture of `copied`.
std::string check_splice(const CodedVideo& copied, const Frame& frame, const CodedVideo& encoded);

/// The mp4 of a clip: `head`, `copied` and `tail`, one after the other; the first and the last may
/// be empty. Their times, which must all differ and follow each other, are in the source's
/// time base; the first becomes zero, and the clip is over at `end`. Throws Error.
std::string splice_mp4(const CodedVideo& head, const CodedVideo& copied, const CodedVideo& tail,
                       std::int64_t end, const AudioTrack& audio);

}  // namespace vfm::media
