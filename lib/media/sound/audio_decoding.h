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

/// The time in seconds that is decoded before a span, since the first packets may give silence or
/// noise.
inline constexpr AVRational kPreRoll{80, 1000};

/// Returns the channels of a decoded frame as a layout with positions, which the caller must free.
/// Throws Error for rates outside 16 Hz to 1 MHz, and for 0 or more than 64 channels.
AVChannelLayout positioned(const AVFrame& frame);

/// Returns a converter from sound like `frame` to `layout`, `format` and `rate`. The caller still
/// owns `layout`. Throws the Errors of positioned(). Throws Error if the rate of the frame is below
/// a hundredth of `rate`, or if swresample cannot convert.
SwrPtr open_converter(const AVFrame& frame, AVChannelLayout layout, AVSampleFormat format,
                      int rate);

/// Calls `take` with the frames of the span and of kPreRoll before the span, in order, until `take`
/// returns false. `at` is the time of the frame in seconds after the beginning of the span, and may
/// be negative. If `at` has no value, the frame follows the previous frame. Adds the number of
/// packets that cannot be decoded to `corrupt`. Throws Stopped, and Error if the codec has no
/// decoder.
void decode_audio(AudioPackets& packets, const Span& span, std::int64_t& corrupt,
                  const std::function<bool(const AVFrame& frame, std::optional<double> at)>& take);

}  // namespace vfm::media
