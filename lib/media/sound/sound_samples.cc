// SPDX-License-Identifier: Apache-2.0
#include "media/sound/sound_samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "media/sound/audio_decoding.h"
#include "media/sound/audio_packets.h"
#include "media/sound/here_or_apart.h"
#include "media/sound/laid_sound.h"

namespace vfm::media {
namespace {

constexpr int kLowestRate = 8000;  // A frame of the source is then at most two of ours.
constexpr float kLoudest = 8;
constexpr auto kBoth = static_cast<std::size_t>(SoundSamples::kChannels);

std::int64_t samples_in(const Span& span) {
  const double seconds = std::min(span.seconds(), SoundSamples::kMostSeconds);
  return std::max<std::int64_t>(1, std::llround(seconds * SoundSamples::kRate));
}

AVChannelLayout stereo() {
  return AV_CHANNEL_LAYOUT_STEREO;
}

/// Samples from outside may have any value.
float bounded_sample(float x) {
  return std::isfinite(x) ? std::clamp(x, -kLoudest, kLoudest) : 0;
}

class SampledSpan {
 public:
  explicit SampledSpan(std::int64_t length)
      : laid_(stereo(), SoundSamples::kRate, length),
        samples_(static_cast<std::size_t>(length) * kBoth) {}

  bool add(const AVFrame& frame, std::optional<double> at);
  SoundSamples::Heard take();

 private:
  LaidSound laid_;
  std::int64_t first_ = INT64_MAX, last_ = 0;  // Of what is heard.
  std::vector<float> samples_;
};

bool SampledSpan::add(const AVFrame& frame, std::optional<double> at) {
  if (frame.sample_rate < kLowestRate)
    fail("sound of {} samples a second is not looked at", frame.sample_rate);
  const LaidSound::Part part = laid_.lay(frame, at);
  if (part.times > 0) {
    std::transform(part.samples, part.samples + part.times * kBoth,
                   samples_.begin() + part.begin * SoundSamples::kChannels, bounded_sample);
    first_ = std::min(first_, part.begin);
    last_ = std::max(last_, part.begin + static_cast<std::int64_t>(part.times));
  }
  return !laid_.ended();
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
  std::int64_t corrupt = 0;  // Reported by the reader that keeps the sound.
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
  if (reply.answer == ChildAnswer::end) return std::nullopt;
  const std::int64_t length = samples_in(span);
  const std::uint64_t count = reply.bytes / (sizeof(float) * kBoth);
  if (reply.bytes > child.room_bytes() || reply.bytes % (sizeof(float) * kBoth) != 0 ||
      reply.begin < 0 || reply.begin > length ||
      count > static_cast<std::uint64_t>(length - reply.begin))
    work_->disbelieve();
  Heard heard{reply.begin, std::vector<float>(static_cast<std::size_t>(count) * kBoth)};
  if (count > 0) std::memcpy(heard.samples.data(), child.room(), reply.bytes);
  std::transform(heard.samples.begin(), heard.samples.end(), heard.samples.begin(), bounded_sample);
  return heard;
}

}  // namespace vfm::media
