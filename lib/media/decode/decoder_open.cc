// How Decoder opens a file: chooses the stream and the codec, and reads their properties.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/log.h"
#include "media/colour/hdr_metadata.h"
#include "media/decode/decoder_body.h"
#include "media/decode/decoder_state.h"
#include "media/decode/picture_memory.h"

namespace vfm::media {
namespace {

// Splits the display matrix into a flip and a rotation by a multiple of 90 degrees. FFmpeg's matrix
// maps stored (x, y) to (a x + c y, b x + d y), with a, b at [0], [1] and c, d at [3], [4].
void split_matrix(const std::int32_t* m, int& rotation, bool& mirror) {
  double a = m[0], b = m[1];
  const double determinant = a * m[4] - b * static_cast<double>(m[3]);
  mirror = determinant < 0;
  // A mirrored matrix is a rotation times a flip of x. Undoes the flip.
  if (mirror) a = -a, b = -b;
  const double degrees = std::atan2(b, a) * 180 / M_PI;
  rotation = (static_cast<int>(std::lround(degrees / 90)) * 90 % 360 + 360) % 360;
  if (std::abs(std::remainder(degrees, 90)) > 1)
    log_debug("rotation by {:.1f} degrees taken as {}", degrees, rotation);
}

bool is_picture_format(const char* name) {
  const std::size_t length = std::strlen(name);
  return std::strcmp(name, "image2pipe") == 0 ||
         (length > 5 && std::strcmp(name + length - 5, "_pipe") == 0);
}

// Decoders of MPEG-4 and its relatives conceal errors with uninitialised memory. Holes are better.
bool repairs_at_random(AVCodecID codec) {
  for (const AVCodecID id :
       {AV_CODEC_ID_MPEG4, AV_CODEC_ID_H263, AV_CODEC_ID_FLV1, AV_CODEC_ID_MSMPEG4V1,
        AV_CODEC_ID_MSMPEG4V2, AV_CODEC_ID_MSMPEG4V3, AV_CODEC_ID_WMV1, AV_CODEC_ID_WMV2})
    if (codec == id) return true;
  return false;
}

// The frame threads of the VP3 and Theora decoder have a race, so pictures differ from run to run.
// Those of VP7 and VP8 pass on references before they know that a picture is damaged.
bool threads_change_pictures(AVCodecID codec) {
  for (const AVCodecID id :
       {AV_CODEC_ID_THEORA, AV_CODEC_ID_VP3, AV_CODEC_ID_VP4, AV_CODEC_ID_VP7, AV_CODEC_ID_VP8})
    if (codec == id) return true;
  return false;
}

// If a picture's data end too early, many decoders (HEVC, VP8, FFV1, JPEG-LS) leave old contents in
// the buffer, without an error. The common decoders listed here repair the picture or report an
// error.
bool fills_pictures(AVCodecID codec) {
  for (const AVCodecID id : {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO,
                             AV_CODEC_ID_MPEG4, AV_CODEC_ID_VP9, AV_CODEC_ID_AV1})
    if (codec == id) return true;
  return false;
}

}  // namespace

void set_display_size(StreamInfo& info) {
  constexpr double kMost = 65536;  // Largest side of a Frame.
  double width = std::round(info.width * info.sample_aspect.value());
  if (!(width <= kMost)) {
    info.sample_aspect = {1, 1};
    width = info.width;
  }
  info.display_width = std::max(1, static_cast<int>(width));
  info.display_height = info.height;
  if (info.rotation % 180 != 0) std::swap(info.display_width, info.display_height);
}

Decoder::State::State(const Source& from, const DecodeOptions& how) : source(from), options(how) {
  if (options.hardware) kept_hardware = options.hardware->weak_from_this().lock();
  open();
  describe();
}

void Decoder::State::open() {
  codec.reset();
  input = std::make_unique<Input>(source);
  AVFormatContext* format = input->format();
  choose_stream();
  const int chosen = info.stream;
  stream = format->streams[chosen];
  for (int i = 0; i < static_cast<int>(format->nb_streams); ++i)
    format->streams[i]->discard = i != chosen              ? AVDISCARD_ALL
                                  : options.keyframes_only ? AVDISCARD_NONKEY
                                                           : AVDISCARD_DEFAULT;
  timeline = Timeline(*stream);
  pictures = PictureCount(*stream->codecpar);
  importer.keep_hdr(options.keep_hdr);
  importer.set_hdr(hdr_of(*stream));
  open_codec();
  draining = finished = refused = false;
  hardware_width = hardware_height = 0;
  from_start = true;
  corrupt = 0;
  watch.errors = 0;
  watch.oversize = watch.impossible = 0;
  index = last_gap = last_dts = decoded = 0;
  pixels = 0;
  last_pts.reset();
  pending.reset();
  earlier.reset();
}

void Decoder::State::choose_stream() {
  const AVFormatContext* format = input->format();
  int chosen = options.stream;
  if (chosen >= 0) {
    if (chosen >= static_cast<int>(format->nb_streams) ||
        format->streams[chosen]->codecpar->codec_type != AVMEDIA_TYPE_VIDEO)
      fail_as(Cause::format, "'{}' has no video stream {} (its streams: {})", source.name, chosen,
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
    fail_as(Cause::format, "'{}' has no video stream ({})", source.name, what);
  }
  input->check_inside(chosen);
  const AVCodecParameters* size = format->streams[chosen]->codecpar;
  check_pixels(source.name, size->width, size->height);
  info.stream = chosen;
}

void Decoder::State::open_codec() {
  const AVCodec* decoder = avcodec_find_decoder(stream->codecpar->codec_id);
  if (!decoder)
    fail_as(Cause::decode, "cannot decode '{}': this FFmpeg has no decoder for {}", source.name,
            avcodec_get_name(stream->codecpar->codec_id));
  codec.reset(not_null(avcodec_alloc_context3(decoder)));
  if (avcodec_parameters_to_context(codec.get(), stream->codecpar) < 0) throw std::bad_alloc();
  codec->pkt_timebase = stream->time_base;
  codec->max_pixels = codec_max_pixels();
  // The same bits on every processor, and cropping at the left by any number of pixels.
  codec->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_UNALIGNED;
  const bool alone = careful || threads_change_pictures(codec->codec_id);
  codec->thread_count = alone ? 1 : std::max(1, options.threads);
  codec->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
  watch_codec(codec.get(), &watch);
  if (careful && repairs_at_random(codec->codec_id)) codec->error_concealment = 0;
  watch.memory = options.memory;
  watch.clean = careful || !fills_pictures(codec->codec_id);
  if (watch.memory || watch.clean) place_pictures(codec.get());
  if (options.keyframes_only) codec->skip_frame = AVDISCARD_NONKEY;
  const bool may = options.hardware && !careful && !options.keyframes_only;
  const bool counted = may && options.hardware->sessions();
  session_bytes = counted && !session ? options.hardware->session_bytes(*codec) : 0;
  on_hardware =
      may && (!counted || session) && options.hardware->attach(*codec, session ? session->gpu : 0);
  if (!on_hardware) session.reset();
  if (options.hardware && !on_hardware && !careful && session_bytes == 0) note_software();
  clear_libav_message();
  if (const int error = avcodec_open2(codec.get(), decoder, nullptr); error < 0)
    fail_as(error == AVERROR(ENOMEM) ? Cause::memory : Cause::decode, "cannot decode '{}': {}",
            source.name, libav_error_text(error));
}

// Called before the first picture. Without a session, software decodes the whole stream.
void Decoder::State::decode_with(std::shared_ptr<share::EngineSessions::Session> given) {
  session = std::move(given);
  if (session) return open_codec();
  static std::atomic<bool> said = false;
  if (!said.exchange(true))
    log_info("'{}' is decoded in software, and so are others for which no GPU has a session free",
             source.name);
  options.hardware = nullptr;
  session_bytes = 0;
}

// Logged for the first file only.
void Decoder::State::note_software() const {
  static std::atomic<bool> said = false;
  if (!said.exchange(true))
    log_info(
        "'{}' ({}) is decoded in software; so are others that hardware does not decode exactly",
        source.name, avcodec_get_name(stream->codecpar->codec_id));
}

// Moves the input.
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
  const auto* kind = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(parameters->format));
  info.bit_depth = kind ? kind->comp[0].depth : 8;
  info.transfer = parameters->color_trc;
  info.primaries = parameters->color_primaries;
  info.interlaced = parameters->field_order > AV_FIELD_PROGRESSIVE;
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
  if (format->start_time != AV_NOPTS_VALUE)
    info.start = static_cast<double>(format->start_time) / AV_TIME_BASE;
  info.frames = std::max<std::int64_t>(0, stream->nb_frames);
  for (unsigned i = 0; i < format->nb_streams; ++i)
    info.has_audio |= format->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
  if (const int audio = input->best_stream(AVMEDIA_TYPE_AUDIO); audio >= 0)
    info.audio_codec = avcodec_get_name(format->streams[audio]->codecpar->codec_id);
  std::size_t size = 0;
  const auto* matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  read_matrix(matrix, size);

  info.endless = input->endless();
  info.image = is_picture_format(info.container.c_str());
  if (info.container == "gif" || info.container == "apng") {
    info.image = !animated();
    rewind();
  }
  if (info.image) {
    // A photo's orientation is known only with the picture, so the picture is decoded now and kept.
    rewind();
    if (!pending) check_possible();
    if (!pending) fail_as(Cause::decode, "'{}' holds no picture that can be decoded", source.name);
    info.width = pending->width;
    info.height = pending->height;
    info.frames = 1;
  }
  set_display_size(info);
}

void Decoder::State::read_matrix(const std::uint8_t* data, std::size_t size) {
  std::int32_t matrix[9];
  if (!data || size < sizeof matrix) return;
  std::memcpy(matrix, data, sizeof matrix);
  if (matrix[0] == 0 && matrix[1] == 0 && matrix[3] == 0 && matrix[4] == 0) return;
  split_matrix(matrix, info.rotation, info.mirror);
}

void Decoder::State::rewind() {
  open();
  if (!info.image) return;
  Frame first;
  if (decode(first)) pending = std::move(first);
  finished = true;
}

}  // namespace vfm::media
