// SPDX-License-Identifier: Apache-2.0
#include "media/sound/sound_meter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "media/sound/audio_decoding.h"
#include "media/sound/audio_packets.h"
#include "media/sound/here_or_apart.h"
#include "media/sound/laid_sound.h"
#include "media/sound/loudness.h"
#include "media/sound/speech_likeness.h"

namespace vfm::media {
namespace {

constexpr double kSilentPower = 1e-6;   // -60 dB of full scale.
constexpr double kSilencePiece = 0.05;  // Seconds of a piece that is silent or not.

LoudnessWeight weight_of(const AVChannelLayout& layout, unsigned index) {
  switch (av_channel_layout_channel_from_index(&layout, index)) {
    case AV_CHAN_LOW_FREQUENCY:
    case AV_CHAN_LOW_FREQUENCY_2:
      return LoudnessWeight::none;
    case AV_CHAN_SIDE_LEFT:
    case AV_CHAN_SIDE_RIGHT:
    case AV_CHAN_BACK_LEFT:
    case AV_CHAN_BACK_RIGHT:
      return LoudnessWeight::surround;
    default:
      return LoudnessWeight::front;
  }
}

/// The format of the first frame is used for all frames.
class HeardSpan {
 public:
  HeardSpan(const AVFrame& like, double seconds);

  bool add(const AVFrame& frame, std::optional<double> at);
  std::optional<SoundMeasures> result();

 private:
  void hear(const float* samples, std::size_t times);

  int rate_;
  LaidSound laid_;
  std::int64_t heard_ = 0, sounding_ = 0;
  LoudnessMeter loudness_;
  SpeechLikeness speech_;
  std::vector<float> mono_;
  std::vector<double> power_;  // Of the open piece, for each channel.
  std::int64_t in_piece_ = 0;
};

std::vector<LoudnessWeight> weights_of(const AVChannelLayout& layout) {
  std::vector<LoudnessWeight> weights;
  for (int i = 0; i < layout.nb_channels; ++i)
    weights.push_back(weight_of(layout, static_cast<unsigned>(i)));
  return weights;
}

HeardSpan::HeardSpan(const AVFrame& like, double seconds)
    : rate_(like.sample_rate),
      laid_(positioned(like), rate_, std::max<std::int64_t>(1, std::llround(seconds * rate_))),
      loudness_(weights_of(laid_.layout()), rate_),
      speech_(rate_),
      power_(static_cast<std::size_t>(laid_.layout().nb_channels)) {}

bool HeardSpan::add(const AVFrame& frame, std::optional<double> at) {
  const LaidSound::Part part = laid_.lay(frame, at);
  // Overlapping frames do not make more sound than the span has time.
  hear(part.samples, std::min(part.times, static_cast<std::size_t>(laid_.length() - heard_)));
  return !laid_.ended() && heard_ < laid_.length();
}

void HeardSpan::hear(const float* samples, std::size_t times) {
  if (times == 0) return;
  const std::size_t channels = power_.size();
  loudness_.add(samples, times);
  mono_.resize(times);
  const auto piece = std::max<std::int64_t>(1, std::llround(kSilencePiece * rate_));
  for (std::size_t i = 0; i < times; ++i) {
    float sum = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const float x = samples[i * channels + c];
      sum += x;
      power_[c] += double{x} * x;
    }
    mono_[i] = sum / static_cast<float>(channels);
    if (++in_piece_ < piece) continue;
    const double most = *std::max_element(power_.begin(), power_.end());
    if (most >= kSilentPower * static_cast<double>(piece)) sounding_ += piece;
    std::fill(power_.begin(), power_.end(), 0.0);
    in_piece_ = 0;
  }
  heard_ += static_cast<std::int64_t>(times);
  speech_.add(mono_.data(), times);
}

std::optional<SoundMeasures> HeardSpan::result() {
  if (heard_ == 0) return std::nullopt;
  if (in_piece_ > 0 && *std::max_element(power_.begin(), power_.end()) >=
                           kSilentPower * static_cast<double>(in_piece_))
    sounding_ += in_piece_;
  SoundMeasures m;
  m.loudness = loudness_.integrated();
  m.silence = 1 - static_cast<double>(sounding_) / static_cast<double>(laid_.length());
  m.speech = speech_.result();
  return m;
}

}  // namespace

struct SoundMeter::State {
  State(const Source& source, int video) : packets(source, video) {}
  std::optional<SoundMeasures> measure(const Span& span);
  AudioPackets packets;
};

std::optional<SoundMeasures> SoundMeter::State::measure(const Span& span) {
  if (!packets.stream()) return std::nullopt;
  std::optional<HeardSpan> heard;
  std::int64_t corrupt = 0;  // Reported by the reader that keeps the sound.
  try {
    decode_audio(packets, span, corrupt, [&](const AVFrame& frame, std::optional<double> at) {
      if (frame.sample_rate <= 0) return true;
      if (!heard) heard.emplace(frame, span.seconds());
      return heard->add(frame, at);
    });
  } catch (const Error& error) {
    if (may_pass(error.cause())) throw;
    return std::nullopt;
  }
  return heard ? heard->result() : std::nullopt;
}

struct SoundMeter::Work : HereOrApart<State> {
  Work(const Source& source, int video) : HereOrApart(source, video, Want::sound) {}
};

SoundMeter::SoundMeter(const std::string& path, int video)
    : work_(std::make_unique<Work>(Source{path, {}, {}}, video)) {}
SoundMeter::SoundMeter(std::string_view bytes, const std::string& name, int video)
    : work_(std::make_unique<Work>(Source{name, bytes, {}}, video)) {}
SoundMeter::~SoundMeter() = default;
SoundMeter::SoundMeter(SoundMeter&&) noexcept = default;

std::optional<SoundMeasures> SoundMeter::measure(const Span& span) {
  if (span.end <= span.begin) return std::nullopt;
  if (work_->here) return work_->here->call([span](State& state) { return state.measure(span); });
  const Reply reply = work_->child->ask(request_for(Ask::measure, span)).reply;
  if (reply.answer == ChildAnswer::end) return std::nullopt;
  if (!std::isfinite(reply.loudness) || !std::isfinite(reply.speech) ||
      !(reply.silence >= 0 && reply.silence <= 1))
    work_->disbelieve();
  SoundMeasures measures;
  if (reply.has_loudness) measures.loudness = reply.loudness;
  measures.silence = reply.silence;
  if (reply.has_speech) measures.speech = reply.speech;
  return measures;
}

}  // namespace vfm::media
