// Joins a clip from packets of an encoder and unchanged packets of the source.
//
// A decoder of the clip needs the headers of the encoder and of the source. For H.264 and HEVC, the
// header of the mp4 (avc1, hvc1) has the parameter sets of encoder and source, with different ids.
// In VP9 and AV1, each key frame resets the decoder. Thread-safety: any thread may call each
// function.
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

/// Coded pictures in decoding order, with their times in the source and the parameters for a
/// decoder.
class CodedVideo {
 public:
  struct Data;  // Defined in media/container/mux.h.
  CodedVideo() = default;
  explicit CodedVideo(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  bool empty() const { return !data_; }
  std::uint64_t bytes() const;  ///< Size of the packets in bytes.
  const Data* data() const { return data_.get(); }

 private:
  std::shared_ptr<const Data> data_;
};

/// Returns FFmpeg's name of the encoder whose pictures can be joined with pictures of a source in
/// `codec` ("h264", "hevc", "vp9", "av1"). Returns "" if this FFmpeg has no such encoder.
std::string splice_encoder(const std::string& codec);

/// The properties of a source's packets that the encoder must match.
struct SpliceKind {
  int profile = -99, level = -99;  ///< FFmpeg's numbers; -99 if unknown.
};

/// Returns the reason why `copied` and `encoded` cannot be joined, or "" if they can. `encoded` may
/// be empty. Decodes the first picture of `copied`, which must equal `frame`. The pictures of
/// `encoded` must have the same size, pixel format and colours.
std::string check_splice(const CodedVideo& copied, const Frame& frame, const CodedVideo& encoded);

/// Returns the mp4 of a clip that consists of `head`, `copied` and `tail`. `head` and `tail` may be
/// empty. All times are in the time base of the source, and must differ. The parts must be in order
/// of time. The first time becomes zero. `end` is the time in the source at which the clip ends.
/// Throws Error.
std::string splice_mp4(const CodedVideo& head, const CodedVideo& copied, const CodedVideo& tail,
                       std::int64_t end, const AudioTrack& audio);

}  // namespace vfm::media
