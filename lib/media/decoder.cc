// SPDX-License-Identifier: Apache-2.0
#include "media/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "media/input.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

// How to show what is stored: the display matrix as a flip and a turn by a multiple of 90 degrees.
// FFmpeg's matrix maps stored (x, y) to (a x + c y, b x + d y), with a b at [0] [1] and c d at [3]
// [4].
void read_matrix(const std::int32_t* m, int& rotation, bool& mirror) {
  double a = m[0], b = m[1];
  const double determinant = a * m[4] - b * static_cast<double>(m[3]);
  mirror = determinant < 0;
  // A mirrored matrix is (turn) x (flip of x): undo the flip to see the turn.
  if (mirror) a = -a, b = -b;
  const double degrees = std::atan2(b, a) * 180 / M_PI;
  rotation = (static_cast<int>(std::lround(degrees / 90)) * 90 % 360 + 360) % 360;
  if (std::abs(std::remainder(degrees, 90)) > 1)
    log_debug("rotation by {:.1f} degrees taken as {}", degrees, rotation);
}

// Stays 0 and false for a matrix that is not there or says nothing.
void read_matrix_bytes(const std::uint8_t* data, std::size_t size, StreamInfo& info) {
  if (!data || size < 9 * sizeof(std::int32_t)) return;
  std::int32_t matrix[9];
  std::memcpy(matrix, data, sizeof matrix);
  if (matrix[0] == 0 && matrix[1] == 0 && matrix[3] == 0 && matrix[4] == 0) return;
  read_matrix(matrix, info.rotation, info.mirror);
}

void set_display_size(StreamInfo& info) {
  const double aspect = info.sample_aspect.value();
  info.display_width = std::max(1, static_cast<int>(std::lround(info.width * aspect)));
  info.display_height = info.height;
  if (info.rotation % 180 != 0) std::swap(info.display_width, info.display_height);
}

bool is_picture_format(const char* name) {
  const std::size_t length = std::strlen(name);
  return length > 5 && std::strcmp(name + length - 5, "_pipe") == 0;
}

}  // namespace

struct Decoder::State {
  State(const Source& from, const DecodeOptions& how) : source(from), options(how) {
    open();
    describe();
  }

  void open();
  void open_codec();
  void describe();
  bool animated();
  bool feed();
  bool decode(Frame& frame);
  bool fetch(Frame& frame);
  bool try_seek(std::int64_t target, std::int64_t aim);
  void stamp(Frame& frame);
  void seek(std::int64_t target);
  void rewind();
  std::int64_t nominal_duration() const;
  std::int64_t final_duration(const Frame& last) const;

  Source source;
  DecodeOptions options;
  StreamInfo info;
  std::unique_ptr<Input> input;
  AVStream* stream = nullptr;
  CodecPtr codec;
  PacketPtr packet{not_null(av_packet_alloc())};
  FrameImporter importer;

  bool draining = false;
  bool finished = false;
  std::int64_t packets = 0;  // of the stream, since the start
  std::int64_t last_dts = 0;
  std::int64_t corrupt = 0;
  bool any_frame = false;  // one was decoded at some time
  bool from_start = true;  // no seek since opening
  bool irregular = false;  // some pts had to be made up: positions depend on all frames before
  std::optional<std::int64_t> last_pts;
  std::int64_t last_gap = 0;
  std::optional<Frame> pending;  // decoded, waits for its successor to know its duration
  std::int64_t index = 0;
};

void Decoder::State::open() {
  codec.reset();
  input = std::make_unique<Input>(source);
  AVFormatContext* format = input->format();
  int chosen = options.stream;
  if (chosen >= 0) {
    if (chosen >= static_cast<int>(format->nb_streams) ||
        format->streams[chosen]->codecpar->codec_type != AVMEDIA_TYPE_VIDEO)
      fail("'{}' has no video stream {} (its streams: {})", source.name, chosen,
           input->describe_streams());
  } else {
    chosen = input->best_stream(AVMEDIA_TYPE_VIDEO);
  }
  if (chosen < 0) {
    bool art = false, audio = false, other = false;
    for (unsigned i = 0; i < format->nb_streams; ++i) {
      const auto type = format->streams[i]->codecpar->codec_type;
      (type == AVMEDIA_TYPE_VIDEO ? art : type == AVMEDIA_TYPE_AUDIO ? audio : other) = true;
    }
    const char* what = audio && art ? "only audio and cover art"
                       : audio      ? "only audio"
                       : art        ? "only cover art"
                       : other      ? "only subtitles or data"
                                    : "no stream at all";
    fail("'{}' has no video stream ({})", source.name, what);
  }
  info.stream = chosen;
  stream = format->streams[chosen];
  for (int i = 0; i < static_cast<int>(format->nb_streams); ++i)
    format->streams[i]->discard = i != chosen              ? AVDISCARD_ALL
                                  : options.keyframes_only ? AVDISCARD_NONKEY
                                                           : AVDISCARD_DEFAULT;
  open_codec();
  draining = finished = irregular = false;
  from_start = true;
  packets = index = last_gap = 0;
  last_pts.reset();
  pending.reset();
}

void Decoder::State::open_codec() {
  const AVCodec* decoder = avcodec_find_decoder(stream->codecpar->codec_id);
  if (!decoder)
    fail("cannot decode '{}': this FFmpeg has no decoder for {}", source.name,
         avcodec_get_name(stream->codecpar->codec_id));
  codec.reset(not_null(avcodec_alloc_context3(decoder)));
  if (avcodec_parameters_to_context(codec.get(), stream->codecpar) < 0) throw std::bad_alloc();
  codec->pkt_timebase = stream->time_base;
  codec->thread_count = std::max(1, options.threads);
  codec->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
  // The same bits on every processor, and left cropping by any number of pixels.
  codec->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_UNALIGNED;
  if (options.keyframes_only) codec->skip_frame = AVDISCARD_NONKEY;
  if (options.skip_loop_filter) codec->skip_loop_filter = AVDISCARD_ALL;
  clear_libav_message();
  if (const int error = avcodec_open2(codec.get(), decoder, nullptr); error < 0)
    fail("cannot decode '{}': {}", source.name, libav_error_text(error));
}

// Whether the stream has a second packet. Leaves the input somewhere in the middle.
bool Decoder::State::animated() {
  std::int64_t found = 0, damaged = 0;
  while (found < 2 && input->read(packet.get(), damaged)) {
    found += packet->stream_index == info.stream;
    av_packet_unref(packet.get());
  }
  return found > 1;
}

void Decoder::State::describe() {
  const AVFormatContext* format = input->format();
  const AVCodecParameters* parameters = stream->codecpar;
  info.container = format->iformat->name;
  info.codec = avcodec_get_name(parameters->codec_id);
  const char* pixel_format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(parameters->format));
  info.pixel_format = pixel_format ? pixel_format : "unknown";
  info.width = parameters->width;
  info.height = parameters->height;
  const AVRational aspect = av_guess_sample_aspect_ratio(input->format(), stream, nullptr);
  if (aspect.num > 0 && aspect.den > 0) info.sample_aspect = from_av(aspect);
  info.time_base = from_av(stream->time_base);
  info.frame_rate = from_av(stream->avg_frame_rate);
  if (info.frame_rate.num <= 0) info.frame_rate = from_av(stream->r_frame_rate);
  if (info.frame_rate.num <= 0) info.frame_rate = {0, 1};
  if (stream->duration != AV_NOPTS_VALUE && stream->duration > 0)
    info.duration = static_cast<double>(stream->duration) * info.time_base.value();
  else if (format->duration != AV_NOPTS_VALUE && format->duration > 0)
    info.duration = static_cast<double>(format->duration) / AV_TIME_BASE;
  info.frames = std::max<std::int64_t>(0, stream->nb_frames);
  if (const int audio = input->best_stream(AVMEDIA_TYPE_AUDIO); audio >= 0) {
    info.has_audio = true;
    info.audio_codec = avcodec_get_name(format->streams[audio]->codecpar->codec_id);
  }
  std::size_t size = 0;
  read_matrix_bytes(av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size), size, info);

  info.image = is_picture_format(info.container.c_str());
  if (info.container == "gif" || info.container == "apng") {
    info.image = !animated();
    rewind();
  }
  if (info.image) {
    // A camera's orientation is known only with the picture: decode it now and keep it.
    rewind();
    if (!pending) fail("'{}' holds no picture that can be decoded", source.name);
    info.width = pending->width;
    info.height = pending->height;
    info.frames = 1;
  }
  set_display_size(info);
}

// Hands the codec the next packet, or the end; false when there is nothing more to hand.
bool Decoder::State::feed() {
  if (draining) return false;
  while (input->read(packet.get(), corrupt)) {
    if (packet->stream_index != info.stream) {
      av_packet_unref(packet.get());
      continue;
    }
    ++packets;
    if (packet->dts != AV_NOPTS_VALUE) last_dts = packet->dts;
    const int result = avcodec_send_packet(codec.get(), packet.get());
    av_packet_unref(packet.get());
    if (result >= 0) return true;
    ++corrupt;
  }
  draining = true;
  avcodec_send_packet(codec.get(), nullptr);
  // An mp4 says how many samples it has: those behind the end of the file are missing.
  const int promised = avformat_index_get_entries_count(stream);
  if (from_start && !options.keyframes_only && promised > packets) corrupt += promised - packets;
  return true;
}

std::int64_t Decoder::State::nominal_duration() const {
  if (last_gap > 0) return last_gap;
  if (info.frame_rate.num <= 0) return 1;
  return std::max<std::int64_t>(
      1, av_rescale_q(1, av_inv_q(to_av(info.frame_rate)), stream->time_base));
}

// How long the last frame stands. An mp4 that was read to its end says when the stream ends;
// FFmpeg's packet durations are guesses for some codecs (VP9).
std::int64_t Decoder::State::final_duration(const Frame& last) const {
  const int entries = avformat_index_get_entries_count(stream);
  if (entries > 0 && stream->duration > 0 && info.container.find("mp4") != std::string::npos &&
      avformat_index_get_entry(stream, entries - 1)->timestamp <= last_dts) {
    const std::int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
    if (const std::int64_t left = start + stream->duration - last.pts; left > 0) return left;
  }
  return last.duration > 0 ? last.duration : nominal_duration();
}

// Makes the frame's time follow the one before.
void Decoder::State::stamp(Frame& frame) {
  const bool missing = frame.pts == AV_NOPTS_VALUE;
  if (missing && !last_pts) frame.pts = 0;
  if (last_pts && (missing || frame.pts <= *last_pts)) {
    frame.pts = *last_pts + nominal_duration();
    irregular = true;
  }
  irregular = irregular || missing;
  if (last_pts) last_gap = frame.pts - *last_pts;
  last_pts = frame.pts;
}

// The next frame as decoded, in presentation order.
bool Decoder::State::decode(Frame& frame) {
  int errors = 0;
  while (!finished) {
    check_stop();
    AvFramePtr av(not_null(av_frame_alloc()));
    const int result = avcodec_receive_frame(codec.get(), av.get());
    if (result == 0) {
      if (av->decode_error_flags != 0 || (av->flags & AV_FRAME_FLAG_CORRUPT)) ++corrupt;
      const auto* side = av_frame_get_side_data(av.get(), AV_FRAME_DATA_DISPLAYMATRIX);
      if (info.image && side) read_matrix_bytes(side->data, side->size, info);
      frame = importer.import(std::move(av));
      stamp(frame);
      any_frame = true;
      return true;
    }
    if (result == AVERROR_EOF) break;
    if (result == AVERROR(EAGAIN)) {
      if (!feed()) break;
      continue;
    }
    ++corrupt;
    // At the end of the stream each error uses up a picture; a codec that does not must not hang
    // us.
    if (draining && ++errors > 1000) break;
  }
  finished = true;
  return false;
}

bool Decoder::State::fetch(Frame& frame) {
  if (!pending) {
    Frame first;
    if (!decode(first)) return false;
    pending = std::move(first);
  }
  Frame after;
  const bool more = decode(after);
  frame = std::move(*pending);
  if (more) {
    frame.duration = after.pts - frame.pts;
    pending = std::move(after);
  } else {
    frame.duration = final_duration(frame);
    pending.reset();
  }
  frame.index = index++;
  return true;
}

// Starts at the last key frame not after `aim` and goes on to `target`. False when what was found
// there does not prove that the frames from `target` on are those of a decode from the start.
bool Decoder::State::try_seek(std::int64_t target, std::int64_t aim) {
  if (av_seek_frame(input->format(), info.stream, aim, AVSEEK_FLAG_BACKWARD) < 0) return false;
  avcodec_flush_buffers(codec.get());
  draining = finished = from_start = false;
  last_pts.reset();
  last_gap = 0;
  pending.reset();
  index = 0;
  // Frames shown before the first key frame may lack their references (open GOP): only a key frame
  // at or before the target makes everything from the target on exact.
  Frame frame;
  bool proven = false;
  while (decode(frame)) {
    if (irregular) return false;
    proven = proven || (frame.key && frame.pts <= target);
    if (frame.pts < target) continue;
    if (proven) pending = std::move(frame);
    return proven;
  }
  return proven;
}

void Decoder::State::seek(std::int64_t target) {
  // A little ahead: going on is cheaper than starting at a key frame.
  const auto second =
      std::max<std::int64_t>(1, av_rescale_q(1, AVRational{1, 1}, stream->time_base));
  const bool near = pending && pending->pts <= target && target - pending->pts < second;
  if (!near) {
    constexpr int kUnsafe = AVFMT_NOTIMESTAMPS | AVFMT_TS_DISCONT;
    bool found = false;
    bool possible = !info.image && !irregular && !(input->format()->iformat->flags & kUnsafe);
    const std::int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
    for (std::int64_t back = 0; possible && !found; back = std::max(second, 4 * back)) {
      possible = target - back > start;
      found = possible && try_seek(target, target - back);
    }
    if (!found) rewind();
  }
  Frame frame;
  while (!pending || pending->pts < target) {
    pending.reset();
    if (!decode(frame)) break;
    pending = std::move(frame);
  }
  index = 0;
}

// To the state after opening.
void Decoder::State::rewind() {
  open();
  if (!info.image) return;
  Frame first;
  if (decode(first)) pending = std::move(first);
  finished = true;
}

Decoder::Decoder(const std::string& path, const DecodeOptions& options)
    : state_(std::make_unique<State>(Source{path, {}}, options)) {}
Decoder::Decoder(std::string_view bytes, const std::string& name, const DecodeOptions& options)
    : state_(std::make_unique<State>(Source{name, bytes}, options)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

const StreamInfo& Decoder::info() const {
  return state_->info;
}
std::int64_t Decoder::corrupt() const {
  return state_->corrupt;
}

void Decoder::seek(std::int64_t pts) {
  state_->seek(pts);
}

bool Decoder::next(Frame& frame) {
  if (state_->fetch(frame)) return true;
  if (!state_->any_frame) fail("'{}' has no frame that can be decoded", state_->source.name);
  return false;
}

}  // namespace vfm::media
