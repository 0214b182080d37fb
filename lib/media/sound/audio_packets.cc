// SPDX-License-Identifier: Apache-2.0
#include "media/sound/audio_packets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace vfm::media {
namespace {

// No more packets of sound wait for a packet of the video.
constexpr std::size_t kMostWaiting = 1000;

// An AVI has no times, but one length for all chunks of sound. The length is wrong for codecs that
// AVI was not made for (AC-3's successors, DTS, Vorbis, Speex). To find the end of a FLAC packet in
// ASF, FFmpeg reads on, and gives the packet the time of a later one.
bool may_tell_wrong_times(const AVFormatContext& format, const AVStream& stream) {
  const char* const name = format.iformat->name;
  return std::strcmp(name, "avi") == 0 ||
         (std::strcmp(name, "asf") == 0 && stream.codecpar->codec_id == AV_CODEC_ID_FLAC);
}

// Returns the samples that a packet decodes to, for codecs whose packets and parameters do not
// state the number (Speex). Returns 0 if it is unknown.
std::int64_t decoded_samples(const AVStream& stream, const std::deque<PacketPtr>& packets) {
  const AVCodec* decoder = avcodec_find_decoder(stream.codecpar->codec_id);
  if (!decoder) return 0;
  const CodecPtr codec(not_null(avcodec_alloc_context3(decoder)));
  if (avcodec_parameters_to_context(codec.get(), stream.codecpar) < 0) throw std::bad_alloc();
  if (avcodec_open2(codec.get(), decoder, nullptr) < 0) return 0;
  const AvFramePtr frame(not_null(av_frame_alloc()));
  std::int64_t most = 0;  // The first ones may give none.
  for (const PacketPtr& packet : packets) {
    std::int64_t samples = 0;
    avcodec_send_packet(codec.get(), packet.get());
    while (avcodec_receive_frame(codec.get(), frame.get()) >= 0) {
      samples += frame->nb_samples;
      av_frame_unref(frame.get());
    }
    most = std::max(most, samples);
  }
  return most;
}

}  // namespace

std::int64_t time_of(const AVPacket& packet) {
  return packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
}

AVRational AudioPackets::base() const {
  return counted_ ? AVRational{1, stream_->codecpar->sample_rate} : stream_->time_base;
}

std::int64_t AudioPackets::end_of(const AVPacket& packet) const {
  const std::int64_t time = time_of(packet);
  if (time == AV_NOPTS_VALUE) return AV_NOPTS_VALUE;
  std::int64_t duration = packet.duration;
  if (duration <= 0 && stream_->codecpar->sample_rate > 0)
    duration = av_rescale_q(av_get_audio_frame_duration2(stream_->codecpar, packet.size),
                            {1, stream_->codecpar->sample_rate}, base());
  return time + std::max<std::int64_t>(duration, 1);
}

AudioPackets::AudioPackets(Source source, int video) : source_(std::move(source)), video_(video) {
  open();
}

void AudioPackets::open() {
  input_ = std::make_unique<Input>(source_);
  AVFormatContext* format = input_->format();
  const int chosen = input_->best_stream(AVMEDIA_TYPE_AUDIO);
  if (chosen >= 0) input_->check_inside(chosen);
  stream_ = chosen >= 0 ? format->streams[chosen] : nullptr;
  seeks_ = has_one_time(*format);
  if (video_ < 0 || video_ >= static_cast<int>(format->nb_streams))
    video_ = input_->best_stream(AVMEDIA_TYPE_VIDEO);
  streams_ = 0;
  for (int i = 0; i < static_cast<int>(format->nb_streams); ++i) {
    const bool sound = format->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    if (sound) ++streams_;
    const bool wanted = i == chosen || (i == video_ && !seeks_) || (chosen < 0 && sound);
    format->streams[i]->discard = wanted ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
  }
  if (video_ >= 0) timeline_ = Timeline(*format->streams[video_]);
  kept_.clear();
  waiting_.clear();
  place_ = 0;
  floor_ = INT64_MIN;
  counted_ = false;
  each_ = 0;
  if (stream_ && may_tell_wrong_times(*format, *stream_)) check_clock(damage_);
}

bool AudioPackets::is_unknown() {
  if (stream_ || streams_ == 0) return false;
  if (!unknown_) {
    const PacketPtr packet(not_null(av_packet_alloc()));
    std::int64_t damaged = 0;  // Reported by the reader of the pictures.
    unknown_ = false;
    while (!*unknown_ && input_->read(packet.get(), damaged)) {
      unknown_ = packet->stream_index != video_;
      av_packet_unref(packet.get());
    }
  }
  return *unknown_;
}

bool AudioPackets::seek(std::int64_t time) {
  return input_->seek(stream_->index, time);
}

// The index of a container may have only the video's key frames, so a seek can end after the packet
// that is heard at `time`. Then the seek is repeated from further back.
void AudioPackets::start_by_seeking(std::int64_t time, std::int64_t& corrupt) {
  const std::int64_t second = av_rescale_q(1, {1, 1}, stream_->time_base);
  const std::int64_t begin = stream_->start_time == AV_NOPTS_VALUE ? 0 : stream_->start_time;
  for (std::int64_t back = 0;; back = std::max(second, 4 * back)) {
    const bool at_begin = time - back <= begin;
    if (!seek(at_begin ? begin : time - back) && !seek(begin)) open();
    first_.reset(not_null(av_packet_alloc()));
    if (!read(first_.get(), corrupt)) first_.reset();
    if (at_begin || (first_ && time_of(*first_) <= time)) return;
  }
}

void AudioPackets::start(std::int64_t time, std::int64_t& corrupt) {
  if (seeks_) return start_by_seeking(time, corrupt);
  if (time < floor_) open();
  corrupt += std::exchange(damage_, 0);
  floor_ = time;
  const auto over = [&](const PacketPtr& packet) {
    const std::int64_t end = end_of(*packet);
    return end == AV_NOPTS_VALUE || end <= time;
  };
  while (!kept_.empty() && over(kept_.front()))
    kept_.pop_front();
  while (kept_.empty() && read_more(corrupt))
    while (!kept_.empty() && over(kept_.front()))
      kept_.pop_front();
  place_ = 0;
}

bool AudioPackets::next(AVPacket* packet, std::int64_t& corrupt) {
  if (seeks_) {
    if (!first_) return read(packet, corrupt);
    av_packet_move_ref(packet, first_.get());
    first_.reset();
    return true;
  }
  while (place_ == kept_.size())
    if (!read_more(corrupt)) return false;
  if (av_packet_ref(packet, kept_[place_++].get()) < 0) throw std::bad_alloc();
  return true;
}

bool AudioPackets::read(AVPacket* packet, std::int64_t& corrupt) {
  while (input_->read(packet, corrupt)) {
    if (packet->stream_index == stream_->index) return true;
    av_packet_unref(packet);
  }
  return false;
}

// If the times of packets do not match their lengths, the lengths count.
void AudioPackets::check_clock(std::int64_t& corrupt) {
  constexpr std::size_t kLook = 4;
  while (kept_.size() < kLook && read_more(corrupt)) {
  }
  if (kept_.size() < 2 || stream_->codecpar->sample_rate <= 0) return;
  if (samples_of(*kept_.front()) <= 0) each_ = decoded_samples(*stream_, kept_);
  std::int64_t heard = 0;
  for (std::size_t i = 0; i + 1 < kept_.size(); ++i)
    heard += samples_of(*kept_[i]);
  const AVRational sample{1, stream_->codecpar->sample_rate};
  const std::int64_t first = av_rescale_q(time_of(*kept_.front()), stream_->time_base, sample),
                     passed =
                         av_rescale_q(time_of(*kept_.back()), stream_->time_base, sample) - first;
  if (heard <= 0 || (passed <= 2 * heard && heard <= 2 * passed)) return;
  counted_ = true;
  counted_end_ = first;
  std::deque<PacketPtr> all;
  all.swap(kept_);
  for (PacketPtr& packet : all)
    keep(std::move(packet));
}

std::int64_t AudioPackets::samples_of(const AVPacket& packet) const {
  if (each_ > 0) return each_;
  return av_rescale_q(packet.duration, stream_->time_base, {1, stream_->codecpar->sample_rate});
}

void AudioPackets::keep(PacketPtr packet) {
  if (counted_) {
    packet->pts = packet->dts = counted_end_;
    packet->duration = samples_of(*packet);
    counted_end_ += packet->duration;
  }
  if (av_packet_make_refcounted(packet.get()) < 0) throw std::bad_alloc();
  kept_.push_back(std::move(packet));
}

// Reads one packet of any stream. Returns false at the end.
bool AudioPackets::read_more(std::int64_t& corrupt) {
  PacketPtr packet(not_null(av_packet_alloc()));
  if (!input_->read(packet.get(), corrupt)) {
    if (waiting_.empty()) return false;
    timeline_.follow(*waiting_.front(), stream_->time_base, false);
    keep(std::move(waiting_.front()));
    waiting_.pop_front();
    return true;
  }
  if (packet->stream_index == video_) timeline_.lead(*packet);
  if (packet->stream_index == stream_->index) waiting_.push_back(std::move(packet));
  while (!waiting_.empty()) {
    const bool wait = waiting_.size() < kMostWaiting;
    if (!timeline_.follow(*waiting_.front(), stream_->time_base, wait)) break;
    keep(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return true;
}

}  // namespace vfm::media
