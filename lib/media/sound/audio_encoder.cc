// SPDX-License-Identifier: Apache-2.0
#include "media/sound/audio_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/stop.h"
#include "media/sound/audio_decoding.h"

namespace vfm::media {
namespace {

constexpr int kBitRatePerChannel = 64000;

const AVCodec& aac() {
  const AVCodec* encoder = avcodec_find_encoder_by_name("aac");
  if (!encoder) fail("this FFmpeg has no encoder 'aac'");
  return *encoder;
}

int aac_rate(int rate) {
  for (const int* known = aac().supported_samplerates; known && *known != 0; ++known)
    if (*known == rate) return rate;
  return 48000;
}

}  // namespace

AudioCanvas::AudioCanvas(const AVFrame& like, double seconds, double tolerance)
    : rate_(aac_rate(like.sample_rate)),
      length_(std::max<std::int64_t>(1, std::llround(seconds * rate_))),
      tolerance_(std::llround(tolerance * rate_)) {
  // Takes the source's channels if AAC has them, else as many in AAC's order, else two.
  if (like.ch_layout.order == AV_CHANNEL_ORDER_NATIVE) {
    av_channel_layout_copy(&layout_, &like.ch_layout);
    open_encoder();
  }
  for (const int channels : {std::min(like.ch_layout.nb_channels, 8), 2}) {
    if (encoder_) break;
    av_channel_layout_uninit(&layout_);
    av_channel_layout_default(&layout_, channels);
    open_encoder();
  }
  if (!encoder_)
    fail("cannot encode sound of {} Hz as aac: {}", rate_, libav_error_text(AVERROR(EINVAL)));
  samples_.assign(static_cast<std::size_t>(layout_.nb_channels),
                  std::vector<float>(static_cast<std::size_t>(length_), 0.0F));
}

void AudioCanvas::open_encoder() {
  clear_libav_message();
  CodecPtr codec(not_null(avcodec_alloc_context3(&aac())));
  codec->sample_rate = rate_;
  codec->sample_fmt = AV_SAMPLE_FMT_FLTP;
  av_channel_layout_copy(&codec->ch_layout, &layout_);
  codec->bit_rate = static_cast<std::int64_t>(kBitRatePerChannel) * layout_.nb_channels;
  codec->time_base = {1, rate_};
  codec->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_GLOBAL_HEADER;
  // The default coder ("twoloop") changes the level of single packets of pure tones by up to 3 dB.
  // This coder does not, and is faster. Its signal to noise ratio is better from 96 kbit/s a
  // channel on, and 0.4 dB lower at 64.
  av_opt_set(codec->priv_data, "aac_coder", "fast", 0);
  if (avcodec_open2(codec.get(), &aac(), nullptr) >= 0) encoder_ = std::move(codec);
}

AudioCanvas::~AudioCanvas() {
  av_channel_layout_uninit(&layout_);
  av_channel_layout_uninit(&from_layout_);
}

void AudioCanvas::put(const AVFrame& frame, std::optional<double> at) {
  if (frame.nb_samples <= 0 || frame.sample_rate <= 0) return;
  if (!converter_ || frame.sample_rate != from_rate_ || frame.format != from_format_ ||
      av_channel_layout_compare(&frame.ch_layout, &from_layout_) != 0) {
    converter_ = open_converter(frame, layout_, AV_SAMPLE_FMT_FLTP, rate_);
    from_rate_ = frame.sample_rate, from_format_ = frame.format;
    av_channel_layout_copy(&from_layout_, &frame.ch_layout);
  }
  if (at) {
    // The converter first gives what it still holds.
    const std::int64_t held = swr_get_delay(converter_.get(), rate_);
    const std::int64_t wanted = std::llround(*at * rate_) - held;
    if (!position_ || std::abs(*position_ - wanted) > tolerance_) position_ = wanted;
  }
  if (!position_) position_ = 0;
  convert(const_cast<const std::uint8_t**>(frame.extended_data), frame.nb_samples);
}

// Null and 0 flush the converter.
void AudioCanvas::convert(const std::uint8_t** data, int count) {
  const int room = swr_get_out_samples(converter_.get(), count);
  if (room <= 0) return;
  std::vector<std::vector<float>> out(samples_.size(),
                                      std::vector<float>(static_cast<std::size_t>(room)));
  std::vector<std::uint8_t*> planes;
  for (auto& plane : out)
    planes.push_back(reinterpret_cast<std::uint8_t*>(plane.data()));
  const int got = swr_convert(converter_.get(), planes.data(), room, data, count);
  if (got < 0) fail("cannot convert sound: {}", libav_error_text(got));
  place(out, got);
}

void AudioCanvas::place(const std::vector<std::vector<float>>& samples, std::int64_t count) {
  const std::int64_t from = std::max<std::int64_t>(0, -*position_);
  const std::int64_t to = std::min(count, length_ - *position_);
  for (std::size_t c = 0; from < to && c < samples_.size(); ++c)
    std::copy(samples[c].begin() + from, samples[c].begin() + to,
              samples_[c].begin() + *position_ + from);
  heard_ = heard_ || from < to;
  *position_ += count;
}

std::shared_ptr<AudioTrack::Data> AudioCanvas::encode() {
  if (converter_) convert(nullptr, 0);
  AVCodecContext* codec = encoder_.get();
  auto data = std::make_shared<AudioTrack::Data>();
  data->time_base = codec->time_base;
  data->parameters.reset(not_null(avcodec_parameters_alloc()));
  const auto receive = [&] {
    for (;;) {
      PacketPtr packet(not_null(av_packet_alloc()));
      if (avcodec_receive_packet(codec, packet.get()) < 0) return;
      // The last packets are longer than the sound. A packet after its end is only padding.
      if (packet->pts >= length_) continue;
      packet->duration = std::min<std::int64_t>(codec->frame_size, length_ - packet->pts);
      data->packets.push_back(std::move(packet));
    }
  };
  for (std::int64_t at = 0; at < length_; at += codec->frame_size) {
    check_stop();
    AvFramePtr frame(not_null(av_frame_alloc()));
    frame->nb_samples = static_cast<int>(std::min<std::int64_t>(codec->frame_size, length_ - at));
    frame->format = codec->sample_fmt;
    frame->sample_rate = rate_;
    frame->pts = at;
    av_channel_layout_copy(&frame->ch_layout, &layout_);
    if (av_frame_get_buffer(frame.get(), 0) < 0) throw std::bad_alloc();
    for (std::size_t c = 0; c < samples_.size(); ++c)
      std::memcpy(frame->extended_data[c], samples_[c].data() + at,
                  static_cast<std::size_t>(frame->nb_samples) * sizeof(float));
    if (avcodec_send_frame(codec, frame.get()) < 0) fail("cannot encode sound");
    receive();
  }
  avcodec_send_frame(codec, nullptr);
  receive();
  avcodec_parameters_from_context(data->parameters.get(), codec);
  return data;
}

}  // namespace vfm::media
