// Inside lib/media only: coded packets to the bytes of an mp4.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "media/container/splice.h"
#include "media/libav.h"
#include "media/sound/audio.h"

namespace vfm::media {

/// One stream: packets in decoding order, times in time_base.
struct MuxStream {
  ParametersPtr parameters;
  AVRational time_base{0, 1};
  AVRational sample_aspect{0, 1};
  AVRational frame_rate{0, 1};
  int rotation = 0;
  HdrMetadata hdr;
  std::vector<PacketPtr> packets;
};

/// The same for sound, and for a piece of a clip: its packets have no decoding times.
struct AudioTrack::Data : MuxStream {};
struct CodedVideo::Data : MuxStream {};

/// An mp4 (a mov for codecs that mp4 has no name for) with the moov box first. `audio` may be null.
/// Deterministic; negative times are hidden by edit lists. Throws Error.
std::string mux_mp4(const MuxStream& video, const MuxStream* audio);

/// Whether mp4 has a name for the codec at all.
bool mp4_can_hold(AVCodecID codec);
/// Whether these packets can be written into an mp4. FFmpeg says no to some codecs that it has a
/// name for (FLAC, TrueHD) and to some kinds of others, and not before it sees header or packets.
bool mp4_takes(const MuxStream& sound);

}  // namespace vfm::media
