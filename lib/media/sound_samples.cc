// SPDX-License-Identifier: Apache-2.0
#include "media/sound_samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "media/audio_decoding.h"
#include "media/audio_packets.h"
#include "media/here_or_apart.h"

namespace vfm::media {
namespace {

constexpr int kLowestRate = 8000;  // so a frame of the source is at most two of ours
constexpr float kLoudest = 8;
constexpr auto kBoth = static_cast<std::size_t>(SoundSamples::kChannels);

std::int64_t samples_in(const Span& span) {
  const double seconds = std::min(span.seconds(), SoundSamples::kMostSeconds);
  return std::max<std::int64_t>(1, std::llround(seconds * SoundSamples::kRate));
}

/// A span on which decoded sound is laid.
class SampledSpan {
 public:
  explicit SampledSpan(std::int64_t length)
      : length_(length), samples_(static_cast<std::size_t>(length) * kBoth) {}

  /// False when the end of the span has been reached.
  bool add(const AVFrame& frame, std::optional<double> at);
  SoundSamples::Heard take();

 private:
  void open_converter(const AVFrame& from);

  std::int64_t length_, position_ = 0;
  std::int64_t first_ = INT64_MAX, last_ = 0;  // of what is heard
  std::vector<float> samples_, converted_;
  SwrPtr converter_;
  int from_rate_ = 0, from_format_ = -1, from_channels_ = 0;
};

void SampledSpan::open_converter(const AVFrame& from) {
  if (from.sample_rate < kLowestRate)
    fail("sound of {} samples a second is not looked at", from.sample_rate);
  AVChannelLayout layout = positioned(from), two = AV_CHANNEL_LAYOUT_STEREO;
  SwrContext* raw = nullptr;
  const int result =
      swr_alloc_set_opts2(&raw, &two, AV_SAMPLE_FMT_FLT, SoundSamples::kRate, &layout,
                          static_cast<AVSampleFormat>(from.format), from.sample_rate, 0, nullptr);
  av_channel_layout_uninit(&layout);
  converter_.reset(raw);
  if (result < 0 || swr_init(raw) < 0) fail("cannot convert sound of {} Hz", from.sample_rate);
  from_rate_ = from.sample_rate, from_format_ = from.format;
  from_channels_ = from.ch_layout.nb_channels;
}

bool SampledSpan::add(const AVFrame& frame, std::optional<double> at) {
  if (frame.nb_samples <= 0) return true;
  if (!converter_ || frame.sample_rate != from_rate_ || frame.format != from_format_ ||
      frame.ch_layout.nb_channels != from_channels_)
    open_converter(frame);
  // What the converter holds comes first.
  if (at)
    position_ = std::llround(std::clamp(*at, -1e9, 1e9) * SoundSamples::kRate) -
                swr_get_delay(converter_.get(), SoundSamples::kRate);
  const int room = swr_get_out_samples(converter_.get(), frame.nb_samples);
  if (room <= 0) return true;
  converted_.resize(static_cast<std::size_t>(room) * kBoth);
  auto* out = reinterpret_cast<std::uint8_t*>(converted_.data());
  const int got =
      swr_convert(converter_.get(), &out, room,
                  const_cast<const std::uint8_t**>(frame.extended_data), frame.nb_samples);
  if (got < 0) fail("cannot convert sound: {}", libav_error_text(got));
  const std::int64_t from = std::clamp<std::int64_t>(-position_, 0, got);
  const std::int64_t to = std::clamp<std::int64_t>(length_ - position_, from, got);
  for (std::int64_t i = from; i < to; ++i)
    for (std::size_t channel = 0; channel < kBoth; ++channel) {
      const float x = converted_[static_cast<std::size_t>(i) * kBoth + channel];
      samples_[static_cast<std::size_t>(position_ + i) * kBoth + channel] =
          std::isfinite(x) ? std::clamp(x, -kLoudest, kLoudest) : 0;
    }
  if (from < to) {
    first_ = std::min(first_, position_ + from);
    last_ = std::max(last_, position_ + to);
  }
  position_ += got;
  return position_ < length_;
}

SoundSamples::Heard SampledSpan::take() {
  if (first_ >= last_) return {};
  samples_.resize(static_cast<std::size_t>(last_) * kBoth);
  samples_.erase(samples_.begin(), samples_.begin() + first_ * SoundSamples::kChannels);
  return {first_, std::move(samples_)};
}

}  // namespace

struct SoundSamples::State {
  State(const Source& source, int video) : packets(source, video) {}
  std::optional<Heard> read(const Span& span);
  AudioPackets packets;
};

std::optional<SoundSamples::Heard> SoundSamples::State::read(const Span& span) {
  if (packets.streams() != 1 || !packets.stream()) return std::nullopt;
  SampledSpan sampled(samples_in(span));
  std::int64_t corrupt = 0;  // is told by whoever keeps the sound
  try {
    decode_audio(packets, span, corrupt, [&](const AVFrame& frame, std::optional<double> at) {
      return frame.sample_rate <= 0 || sampled.add(frame, at);
    });
  } catch (const Error& error) {
    if (may_pass(error.cause())) throw;
    return std::nullopt;
  }
  return sampled.take();
}

struct SoundSamples::Work : HereOrApart<State> {
  Work(const Source& source, int video) : HereOrApart(source, video, Want::samples) {}
};

SoundSamples::SoundSamples(const std::string& path, int video)
    : work_(std::make_unique<Work>(Source{path, {}, {}}, video)) {}
SoundSamples::SoundSamples(std::string_view bytes, const std::string& name, int video)
    : work_(std::make_unique<Work>(Source{name, bytes, {}}, video)) {}
SoundSamples::~SoundSamples() = default;
SoundSamples::SoundSamples(SoundSamples&&) noexcept = default;

std::optional<SoundSamples::Heard> SoundSamples::read(const Span& span) {
  if (span.end <= span.begin) return Heard();
  if (work_->here) return work_->here->call([span](State& state) { return state.read(span); });
  IsolatedChild& child = *work_->child;
  const Reply reply = child.ask(request_for(Ask::hear, span)).reply;
  if (reply.answer == Answer::end) return std::nullopt;
  const std::int64_t length = samples_in(span);
  const std::uint64_t count = reply.bytes / (sizeof(float) * kBoth);
  if (reply.bytes > child.room_bytes() || reply.bytes % (sizeof(float) * kBoth) != 0 ||
      reply.begin < 0 || reply.begin > length ||
      count > static_cast<std::uint64_t>(length - reply.begin))
    fail_as(Cause::crash, "the process that read the sound of '{}' says what cannot be",
            child.name());
  Heard heard{reply.begin, std::vector<float>(static_cast<std::size_t>(count) * kBoth)};
  if (count > 0) std::memcpy(heard.samples.data(), child.room(), reply.bytes);
  for (float& x : heard.samples)  // a child may say anything
    x = std::isfinite(x) ? std::clamp(x, -kLoudest, kLoudest) : 0;
  return heard;
}

}  // namespace vfm::media
