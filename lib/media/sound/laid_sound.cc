// SPDX-License-Identifier: Apache-2.0
#include "media/sound/laid_sound.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/sound/audio_decoding.h"

namespace vfm::media {

/// Moves what the converter holds to the begin of samples_. Returns the samples of a channel.
std::size_t LaidSound::drain() {
  const int room = converter_ ? swr_get_out_samples(converter_.get(), 0) : 0;
  if (room <= 0) return 0;
  samples_.resize(static_cast<std::size_t>(room) * static_cast<std::size_t>(layout_.nb_channels));
  auto* out = reinterpret_cast<std::uint8_t*>(samples_.data());
  return static_cast<std::size_t>(
      std::max(0, swr_convert(converter_.get(), &out, room, nullptr, 0)));
}

LaidSound::Part LaidSound::lay(const AVFrame& frame, std::optional<double> at) {
  if (frame.nb_samples <= 0) return {};
  std::size_t held = 0;
  if (!converter_ || frame.sample_rate != from_rate_ || frame.format != from_format_ ||
      frame.ch_layout.nb_channels != from_channels_) {
    held = drain();
    converter_ = open_converter(frame, layout_, AV_SAMPLE_FMT_FLT, rate_);
    from_rate_ = frame.sample_rate, from_format_ = frame.format;
    from_channels_ = frame.ch_layout.nb_channels;
  }
  const int room = swr_get_out_samples(converter_.get(), frame.nb_samples);
  if (room <= 0) return {};
  if (at)
    position_ = std::llround(std::clamp(*at, -1e9, 1e9) * rate_) -
                swr_get_delay(converter_.get(), rate_) - static_cast<std::int64_t>(held);
  const auto channels = static_cast<std::size_t>(layout_.nb_channels);
  samples_.resize((held + static_cast<std::size_t>(room)) * channels);
  auto* out = reinterpret_cast<std::uint8_t*>(samples_.data() + held * channels);
  const int given =
      swr_convert(converter_.get(), &out, room,
                  const_cast<const std::uint8_t**>(frame.extended_data), frame.nb_samples);
  if (given < 0) fail("cannot convert sound: {}", libav_error_text(given));
  const std::int64_t got = static_cast<std::int64_t>(held) + given;
  const std::int64_t from = std::clamp<std::int64_t>(-position_, 0, got);
  const std::int64_t to = std::clamp<std::int64_t>(length_ - position_, from, got);
  const Part part{position_ + from, samples_.data() + static_cast<std::size_t>(from) * channels,
                  static_cast<std::size_t>(to - from)};
  position_ += got;
  return part;
}

}  // namespace vfm::media
