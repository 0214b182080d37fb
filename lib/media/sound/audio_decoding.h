// Inside lib/media only: the decoded sound of a span.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/rational.h"
#include "media/libav.h"
#include "media/sound/audio_packets.h"

namespace vfm::media {

/// Some decoders give silence or noise until they have heard a few packets (AAC 1, Opus 80 ms).
inline constexpr AVRational kPreRoll{80, 1000};

/// The channels of a decoded frame as a layout with positions, which the caller frees. Throws Error
/// for sound outside 16 Hz to 1 MHz, or 1 to 64 channels. (Filters for any rate that a file can
/// claim would take gigabytes.)
AVChannelLayout positioned(const AVFrame& frame);

/// A converter from sound like that of `frame` to `layout`, `format` and `rate`. Throws Error if
/// positioned() does, for sound below a hundredth of the rate (a hostile file's frame would become
/// gigabytes), and if swresample cannot convert it.
/// `layout` stays its owner's.
SwrPtr open_converter(const AVFrame& frame, AVChannelLayout layout, AVSampleFormat format,
                      int rate);

/// Gives `take` the frames of the span in order, with the lead that decoders need, until it says
/// false. `at`: seconds after the beginning of the span, may be negative; nothing: right after the
/// frame before. Undecodable packets are added to `corrupt`. Throws Error if there is no decoder;
/// Stopped.
void decode_audio(AudioPackets& packets, const Span& span, std::int64_t& corrupt,
                  const std::function<bool(const AVFrame& frame, std::optional<double> at)>& take);

}  // namespace vfm::media
