// SPDX-License-Identifier: Apache-2.0
#include "media/audio.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/stop.h"
#include "media/audio_encoder.h"
#include "media/audio_packets.h"
#include "media/mux.h"

namespace vfm::media {
namespace {

// Some decoders give silence or noise until they have heard a few packets (AAC 1, Opus 80 ms).
constexpr AVRational kPreRoll{80, 1000};

// A source whose timestamps jitter (Matroska counts milliseconds) is no source with gaps.
constexpr double kTolerance = 0.040;

}  // namespace

AudioMode parse_audio_mode(std::string_view name) {
  if (name == "drop") return AudioMode::drop;
  if (name == "copy") return AudioMode::copy;
  if (name == "aac") return AudioMode::aac;
  fail_usage("unknown audio mode '{}' (drop, copy or aac)", name);
}

struct AudioReader::State {
  State(const std::string& path, int video) : packets(path, video) {}

  std::shared_ptr<AudioTrack::Data> copy(const Span& span, std::int64_t& corrupt);
  std::shared_ptr<AudioTrack::Data> encode(const Span& span, std::int64_t& corrupt);
  CodecPtr open_decoder() const;

  AudioPackets packets;
  /// Null: the source has no sound. Not to be kept: start() may reopen the source.
  const AVStream* stream() const { return packets.stream(); }
};

std::shared_ptr<AudioTrack::Data> AudioReader::State::copy(const Span& span,
                                                           std::int64_t& corrupt) {
  const AVRational base = stream()->time_base;
  const std::int64_t begin = av_rescale_q(span.begin, to_av(span.base), base);
  const std::int64_t end = av_rescale_q(span.end, to_av(span.base), base);
  const std::int64_t lead = begin - av_rescale_q(1, kPreRoll, base);
  auto data = std::make_shared<AudioTrack::Data>();
  data->time_base = base;
  data->parameters.reset(not_null(avcodec_parameters_alloc()));
  avcodec_parameters_copy(data->parameters.get(), stream()->codecpar);
  packets.start(lead, corrupt);
  bool heard = false;  // a packet of the span itself, not only of its lead
  std::int64_t last = AV_NOPTS_VALUE;
  for (;;) {
    PacketPtr packet(not_null(av_packet_alloc()));
    if (!packets.next(packet.get(), corrupt)) break;
    const std::int64_t time = time_of(*packet);
    if (time == AV_NOPTS_VALUE || (packet->flags & AV_PKT_FLAG_DISCARD)) continue;
    if (time >= end) break;
    const std::int64_t until = end_of(*packet, *stream());
    if (until <= lead || (last != AV_NOPTS_VALUE && time <= last)) continue;
    heard = heard || until > begin;
    last = time;
    packet->pts = packet->dts = time - begin;
    if (av_packet_make_refcounted(packet.get()) < 0) throw std::bad_alloc();
    data->packets.push_back(std::move(packet));
  }
  return heard ? data : nullptr;
}

CodecPtr AudioReader::State::open_decoder() const {
  const AVCodec* decoder = avcodec_find_decoder(stream()->codecpar->codec_id);
  if (!decoder)
    fail("cannot decode the sound of '{}': this FFmpeg has no decoder for {}", packets.name(),
         avcodec_get_name(stream()->codecpar->codec_id));
  CodecPtr codec(not_null(avcodec_alloc_context3(decoder)));
  if (avcodec_parameters_to_context(codec.get(), stream()->codecpar) < 0) throw std::bad_alloc();
  codec->pkt_timebase = stream()->time_base;
  codec->flags |= AV_CODEC_FLAG_BITEXACT;
  clear_libav_message();
  if (const int error = avcodec_open2(codec.get(), decoder, nullptr); error < 0)
    fail("cannot decode the sound of '{}': {}", packets.name(), libav_error_text(error));
  return codec;
}

std::shared_ptr<AudioTrack::Data> AudioReader::State::encode(const Span& span,
                                                             std::int64_t& corrupt) {
  const CodecPtr decoder = open_decoder();
  const double begin = span.begin_seconds();
  const std::int64_t lead = av_rescale_q(span.begin, to_av(span.base), stream()->time_base) -
                            av_rescale_q(1, kPreRoll, stream()->time_base);
  packets.start(lead, corrupt);
  std::unique_ptr<AudioCanvas> canvas;  // made when the first frame shows rate and channels
  PacketPtr packet(not_null(av_packet_alloc()));
  AvFramePtr frame(not_null(av_frame_alloc()));
  bool open = true;
  while (open) {
    open = packets.next(packet.get(), corrupt);
    if (avcodec_send_packet(decoder.get(), open ? packet.get() : nullptr) < 0 && open) ++corrupt;
    av_packet_unref(packet.get());
    while (avcodec_receive_frame(decoder.get(), frame.get()) >= 0) {
      check_stop();
      std::optional<double> at;  // seconds after the beginning of the span
      if (frame->best_effort_timestamp != AV_NOPTS_VALUE)
        at =
            static_cast<double>(frame->best_effort_timestamp) * av_q2d(stream()->time_base) - begin;
      if (!canvas) canvas = std::make_unique<AudioCanvas>(*frame, span.seconds(), kTolerance);
      canvas->put(*frame, at);
      if (canvas->full()) open = false;
      av_frame_unref(frame.get());
    }
  }
  if (!canvas || !canvas->heard()) return nullptr;
  return canvas->encode();
}

AudioReader::AudioReader(const std::string& path, int video)
    : state_(std::make_unique<State>(path, video)) {}
AudioReader::~AudioReader() = default;
AudioReader::AudioReader(AudioReader&&) noexcept = default;

AudioTrack AudioReader::read(const Span& span, AudioMode mode) {
  AudioTrack track;
  State& s = *state_;
  if (mode == AudioMode::drop || !s.stream() || span.end <= span.begin) return track;
  bool copied = false;
  if (mode == AudioMode::copy && mp4_can_hold(s.stream()->codecpar->codec_id)) {
    track.data_ = s.copy(span, track.corrupt_);
    copied = !track.data_ || mp4_takes(*track.data_);
  }
  if (!copied) {
    track.corrupt_ = 0;
    track.data_ = s.encode(span, track.corrupt_);
    track.encoded_ = track.data_ != nullptr;
  }
  if (track.data_) track.codec_ = avcodec_get_name(track.data_->parameters->codec_id);
  return track;
}

}  // namespace vfm::media
