// SPDX-License-Identifier: Apache-2.0
#include "media/sound/audio_decoding.h"

#include "base/error.h"
#include "base/stop.h"

namespace vfm::media {
namespace {

constexpr int kLeastRate = 16, kMostRate = 1'000'000, kMostChannels = 64;  // As LoudnessMeter.

CodecPtr open_audio_decoder(const AudioPackets& packets) {
  const AVStream& stream = *packets.stream();
  const AVCodec* decoder = avcodec_find_decoder(stream.codecpar->codec_id);
  if (!decoder)
    fail("cannot decode the sound of '{}': this FFmpeg has no decoder for {}", packets.name(),
         avcodec_get_name(stream.codecpar->codec_id));
  CodecPtr codec(not_null(avcodec_alloc_context3(decoder)));
  if (avcodec_parameters_to_context(codec.get(), stream.codecpar) < 0) throw std::bad_alloc();
  codec->pkt_timebase = packets.base();
  codec->flags |= AV_CODEC_FLAG_BITEXACT;
  clear_libav_message();
  if (const int error = avcodec_open2(codec.get(), decoder, nullptr); error < 0)
    fail("cannot decode the sound of '{}': {}", packets.name(), libav_error_text(error));
  return codec;
}

}  // namespace

AVChannelLayout positioned(const AVFrame& frame) {
  const AVChannelLayout& from = frame.ch_layout;
  if (frame.sample_rate < kLeastRate || frame.sample_rate > kMostRate || from.nb_channels < 1 ||
      from.nb_channels > kMostChannels)
    fail("sound of {} Hz in {} channels is not read here ({} Hz to {} Hz, at most {} channels)",
         frame.sample_rate, from.nb_channels, kLeastRate, kMostRate, kMostChannels);
  AVChannelLayout layout{};
  if (from.order == AV_CHANNEL_ORDER_UNSPEC)
    av_channel_layout_default(&layout, from.nb_channels);
  else
    av_channel_layout_copy(&layout, &from);
  return layout;
}

SwrPtr open_converter(const AVFrame& frame, AVChannelLayout layout, AVSampleFormat format,
                      int rate) {
  constexpr int kMostTimes = 100;
  AVChannelLayout from = positioned(frame);
  SwrContext* raw = nullptr;
  const bool enough = frame.sample_rate >= rate / kMostTimes;
  const bool set = enough && swr_alloc_set_opts2(&raw, &layout, format, rate, &from,
                                                 static_cast<AVSampleFormat>(frame.format),
                                                 frame.sample_rate, 0, nullptr) >= 0;
  av_channel_layout_uninit(&from);
  SwrPtr converter(raw);
  if (!enough) fail("sound of {} Hz is not made sound of {} Hz", frame.sample_rate, rate);
  if (!set || swr_init(raw) < 0) fail("cannot convert sound of {} Hz", frame.sample_rate);
  return converter;
}

void decode_audio(AudioPackets& packets, const Span& span, std::int64_t& corrupt,
                  const std::function<bool(const AVFrame& frame, std::optional<double> at)>& take) {
  const CodecPtr decoder = open_audio_decoder(packets);
  const double begin = span.begin_seconds();
  const AVRational base = packets.base();
  const std::int64_t lead =
      av_rescale_q(span.begin, to_av(span.base), base) - av_rescale_q(1, kPreRoll, base);
  packets.start(lead, corrupt);
  PacketPtr packet(not_null(av_packet_alloc()));
  AvFramePtr frame(not_null(av_frame_alloc()));
  bool open = true;
  while (open) {
    open = packets.next(packet.get(), corrupt);
    if (avcodec_send_packet(decoder.get(), open ? packet.get() : nullptr) < 0 && open) ++corrupt;
    av_packet_unref(packet.get());
    while (avcodec_receive_frame(decoder.get(), frame.get()) >= 0) {
      check_stop();
      std::optional<double> at;
      if (frame->best_effort_timestamp != AV_NOPTS_VALUE)
        at = static_cast<double>(frame->best_effort_timestamp) * av_q2d(base) - begin;
      if (!take(*frame, at)) open = false;
      av_frame_unref(frame.get());
    }
  }
}

}  // namespace vfm::media
