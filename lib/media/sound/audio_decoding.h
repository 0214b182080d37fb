// Inside lib/media only: decodes the sound of a span.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/rational.h"
#include "media/libav.h"
#include "media/sound/audio_packets.h"

namespace vfm::media {

/// Decoding begins this many seconds before a span, since decoders may give silence or noise for
/// the first packets (AAC 1 packet, Opus 80 ms).
inline constexpr AVRational kPreRoll{80, 1000};

/// Returns the channels of a decoded frame as a layout with positions, which the caller frees.
/// Throws Error for rates outside 16 Hz to 1 MHz, and unless there are 1 to 64 channels.
AVChannelLayout positioned(const AVFrame& frame);

/// Returns a converter from sound like `frame` to `layout` (which the caller keeps), `format` and
/// `rate`. Throws Error as positioned() does, for a rate below a hundredth of `rate`, and if
/// swresample cannot convert.
SwrPtr open_converter(const AVFrame& frame, AVChannelLayout layout, AVSampleFormat format,
                      int rate);

/// Calls `take` with the frames of the span and of kPreRoll before the span, in order, until `take`
/// returns false. `at` is the seconds after the beginning of the span, and may be negative. No
/// value means right after the frame before. Undecodable packets are added to `corrupt`. Throws
/// Error if there is no decoder, and Stopped.
void decode_audio(AudioPackets& packets, const Span& span, std::int64_t& corrupt,
                  const std::function<bool(const AVFrame& frame, std::optional<double> at)>& take);

}  // namespace vfm::media
