// Inside lib/media only: writes coded packets as the bytes of an mp4.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "media/container/splice.h"
#include "media/libav.h"
#include "media/sound/audio.h"

namespace vfm::media {

/// The packets of a stream in decoding order, with times in units of `time_base`.
struct MuxStream {
  ParametersPtr parameters;
  AVRational time_base{0, 1};
  AVRational sample_aspect{0, 1};
  AVRational frame_rate{0, 1};
  int rotation = 0;
  HdrMetadata hdr;
  std::vector<PacketPtr> packets;
};

/// The packets of an AudioTrack and of a CodedVideo. A CodedVideo has no decoding times.
struct AudioTrack::Data : MuxStream {};
struct CodedVideo::Data : MuxStream {};

/// Returns the bytes of an mp4 with the moov box first, or of a mov if mp4 does not support the
/// codec. `audio` may be null. Equal streams give equal bytes. An edit list hides packets with
/// negative times. Throws Error.
std::string mux_mp4(const MuxStream& video, const MuxStream* audio);

/// Returns true if mp4 has a name for the codec.
bool mp4_can_hold(AVCodecID codec);
/// Returns true if FFmpeg writes the packets of `sound` into an mp4. FFmpeg refuses some codecs
/// that have a name in mp4, such as FLAC.
bool mp4_takes(const MuxStream& sound);

}  // namespace vfm::media
