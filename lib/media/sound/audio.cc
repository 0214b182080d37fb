// SPDX-License-Identifier: Apache-2.0
#include "media/sound/audio.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "media/container/mux.h"
#include "media/sound/audio_decoding.h"
#include "media/sound/audio_encoder.h"
#include "media/sound/audio_packets.h"
#include "media/sound/here_or_apart.h"

namespace vfm::media {
namespace {

// In seconds. Jitter of a source's timestamps (Matroska counts milliseconds) is not a gap.
constexpr double kTolerance = 0.040;

// Returns true if readers keep the time of packets that an edit list cuts in their middle. FFmpeg
// leaves out whole packets of Vorbis, so its sound comes up to one packet early.
bool is_cut_to_the_sample(AVCodecID codec) {
  return codec != AV_CODEC_ID_VORBIS;
}

// In a container that counts packets (AVI), a tick is as long as a packet. Then samples are
// counted.
AVRational fine_base(const AudioPackets& packets) {
  constexpr AVRational kCoarse{1, 1000};
  const int rate = packets.stream()->codecpar->sample_rate;
  return av_cmp_q(packets.base(), kCoarse) > 0 && rate > 0 ? AVRational{1, rate} : packets.base();
}

}  // namespace

AudioMode parse_audio_mode(std::string_view name) {
  if (name == "drop") return AudioMode::drop;
  if (name == "copy") return AudioMode::copy;
  if (name == "aac") return AudioMode::aac;
  fail_usage("unknown audio mode '{}' (drop, copy or aac)", name);
}

struct AudioReader::State {
  State(const Source& source, int video) : packets(source, video) {}

  std::shared_ptr<AudioTrack::Data> copy(const Span& span, std::int64_t& corrupt);
  std::shared_ptr<AudioTrack::Data> encode(const Span& span, std::int64_t& corrupt);

  AudioPackets packets;
  /// Null if the source has no sound. Not to be kept, because start() may reopen the source.
  const AVStream* stream() const { return packets.stream(); }
};

std::shared_ptr<AudioTrack::Data> AudioReader::State::copy(const Span& span,
                                                           std::int64_t& corrupt) {
  const AVRational base = packets.base(), fine = fine_base(packets);
  const std::int64_t begin = av_rescale_q(span.begin, to_av(span.base), fine);
  const std::int64_t end = av_rescale_q(span.end, to_av(span.base), fine);
  const std::int64_t lead = begin - av_rescale_q(1, kPreRoll, fine);
  auto data = std::make_shared<AudioTrack::Data>();
  data->time_base = fine;
  data->parameters.reset(not_null(avcodec_parameters_alloc()));
  avcodec_parameters_copy(data->parameters.get(), stream()->codecpar);
  packets.start(av_rescale_q_rnd(lead, fine, base, AV_ROUND_DOWN), corrupt);
  bool heard = false;  // A packet of the span itself, not only of its lead.
  std::int64_t last = AV_NOPTS_VALUE;
  for (;;) {
    PacketPtr packet(not_null(av_packet_alloc()));
    if (!packets.next(packet.get(), corrupt)) break;
    if (time_of(*packet) == AV_NOPTS_VALUE || (packet->flags & AV_PKT_FLAG_DISCARD)) continue;
    const std::int64_t time = av_rescale_q(time_of(*packet), base, fine);
    if (time >= end) break;
    const std::int64_t until = av_rescale_q(packets.end_of(*packet), base, fine);
    if (until <= lead || (last != AV_NOPTS_VALUE && time <= last)) continue;
    heard = heard || until > begin;
    last = time;
    packet->pts = packet->dts = time - begin;
    packet->duration = av_rescale_q(packet->duration, base, fine);
    if (av_packet_make_refcounted(packet.get()) < 0) throw std::bad_alloc();
    data->packets.push_back(std::move(packet));
  }
  return heard ? data : nullptr;
}

std::shared_ptr<AudioTrack::Data> AudioReader::State::encode(const Span& span,
                                                             std::int64_t& corrupt) {
  std::unique_ptr<AudioCanvas> canvas;
  decode_audio(packets, span, corrupt, [&](const AVFrame& frame, std::optional<double> at) {
    if (!canvas) canvas = std::make_unique<AudioCanvas>(frame, span.seconds(), kTolerance);
    canvas->put(frame, at);
    return !canvas->full();
  });
  if (!canvas || !canvas->heard()) return nullptr;
  return canvas->encode();
}

struct AudioReader::Work : HereOrApart<State> {
  Work(const Source& source, int video) : HereOrApart(source, video, Want::audio) {}
};

AudioReader::AudioReader(const std::string& path, int video)
    : work_(std::make_unique<Work>(Source{path, {}, {}}, video)) {}
AudioReader::AudioReader(std::string_view bytes, const std::string& name, int video)
    : work_(std::make_unique<Work>(Source{name, bytes, {}}, video)) {}
AudioReader::~AudioReader() = default;
AudioReader::AudioReader(AudioReader&&) noexcept = default;

AudioTrack AudioReader::read(const Span& span, AudioMode mode) {
  if (mode == AudioMode::drop || span.end <= span.begin) return {};
  if (work_->here)
    return work_->here->call([span, mode](State& state) { return read_here(state, span, mode); });
  IsolatedChild& child = *work_->child;
  const Reply reply = child.ask(request_for(Ask::read, span, mode)).reply;
  if (reply.bytes > child.room_bytes()) work_->disbelieve();
  // A copy, because the child may change the memory.
  const std::string track(reinterpret_cast<const char*>(child.room()), reply.bytes);
  return parse_track(track);
}

AudioTrack AudioReader::read_here(State& s, const Span& span, AudioMode mode) {
  AudioTrack track;
  if (s.packets.is_unknown())
    fail_as(Cause::decode, "cannot read the sound of '{}': the file does not say what it is",
            s.packets.name());
  if (!s.stream()) return track;
  bool copied = false;
  const AVCodecID codec = s.stream()->codecpar->codec_id;
  if (mode == AudioMode::copy && mp4_can_hold(codec) && is_cut_to_the_sample(codec)) {
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
