// SPDX-License-Identifier: Apache-2.0
#include "media/encode/encoder.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "media/container/coded_units.h"
#include "media/container/mux.h"
#include "media/decode/cuda_device.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder_settings.h"

namespace vfm::media {
namespace {

// Returns the H.264 packet (with start codes) without SEI of user data, which has x264's settings
// and build. SEI about light stays.
PacketPtr without_user_data(const AVPacket& packet) {
  constexpr std::string_view kStart("\0\0\1", 3);
  constexpr char kSei = 6, kUserData = 5;
  const std::string_view in(reinterpret_cast<const char*>(packet.data),
                            static_cast<std::size_t>(packet.size));
  std::string out;
  for (std::size_t begin = in.find(kStart); begin != in.npos;) {
    const std::size_t end = in.find(kStart, begin + 3);
    const std::string_view unit = in.substr(begin, end == in.npos ? in.npos : end - begin);
    const bool drop = unit.size() > 4 && (unit[3] & 31) == kSei && unit[4] == kUserData;
    // The first start code has four bytes.
    if (!drop) out.append(out.empty() ? 1 : 0, '\0').append(unit);
    begin = end;
  }
  PacketPtr copy = new_packet(out);
  if (av_packet_copy_props(copy.get(), &packet) < 0) throw std::bad_alloc();
  return copy;
}

// The encoder has no option for the ids of HEVC parameter sets.
void give_splice_id(MuxStream& video) {
  const auto renumbered = [](const Units& units) {
    std::string out;
    for (const Unit unit : units)
      out += join_units({with_splice_id(unit)});
    return out;
  };
  set_extradata(*video.parameters, renumbered(parameter_sets(*video.parameters)));
  for (PacketPtr& packet : video.packets) {
    const std::string_view bytes(reinterpret_cast<const char*>(packet->data),
                                 static_cast<std::size_t>(packet->size));
    PacketPtr copy(new_packet(renumbered(split_units(bytes, 0))));
    if (av_packet_copy_props(copy.get(), packet.get()) < 0) throw std::bad_alloc();
    packet = std::move(copy);
  }
}

}  // namespace

Rational frame_rate(double fps) {
  constexpr double kSlowest = 0.1, kFastest = 1000;
  if (!(fps >= kSlowest && fps <= kFastest))
    fail("{} frames a second: must be between {} and {}", fps, kSlowest, kFastest);
  return nearest_rate(fps);
}

struct VideoEncoder::State {
  ~State() {
    // SVT-AV1 complains on stderr if it is closed before the end was sent.
    if (codec && !finished) avcodec_send_frame(codec.get(), nullptr);
  }
  AvFramePtr open(const Frame& first);
  void open_container();
  void send(const AVFrame* frame);
  void pass(PacketPtr packet);
  void keep(PacketPtr packet);
  void flush();
  void close();
  std::int64_t final_duration() const;

  EncodeOptions options;
  std::string name, codec_name;
  const EncoderKind* kind = nullptr;
  int coded_width = 0, coded_height = 0;

  std::shared_ptr<share::EngineSessions::Session> session;  // Of `codec`, if it needs one.
  CodecPtr codec;
  BsfPtr filter;  // Null if packets are kept as they are.
  FrameExporter exporter;

  std::vector<std::int64_t> times;  // Of the frames, from 0.
  std::int64_t first_pts = 0, last_duration = 0;
  MuxStream video;
  AudioTrack audio;
  bool finished = false;
};

VideoEncoder::VideoEncoder(const EncodeOptions& options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.options = options;
  if (options.quality < 0 || options.quality > 51)
    fail_usage("quality {} is outside 0..51", options.quality);
  if (options.width <= 0 || options.height <= 0)
    fail_usage("cannot encode pictures of {}x{}", options.width, options.height);
  if (options.time_base.num <= 0 || options.time_base.den <= 0)
    fail_usage("cannot encode with time base {}/{}", options.time_base.num, options.time_base.den);
  if (options.threads < 1) fail_usage("cannot encode with {} threads", options.threads);
  if (options.gop < 0) fail_usage("cannot encode with a key frame every {} frames", options.gop);
  s.name = options.encoder.empty() ? default_encoder() : options.encoder;
  s.kind = &encoder_kind(s.name);
  if (options.bit_depth != 8 && options.bit_depth != 10)
    fail_usage("cannot encode with {} bits a sample, only with 8 or 10", options.bit_depth);
  check_encoder(*s.kind, options.preset, options.bit_depth);
  s.codec_name = avcodec_get_name(avcodec_find_encoder_by_name(s.kind->name)->id);
  std::tie(s.coded_width, s.coded_height) = coded_size(s.name, options.width, options.height);
}

std::pair<int, int> coded_size(const std::string& encoder, int width, int height) {
  const bool even = encoder_kind(encoder).even_size;
  return {width + (even ? width % 2 : 0), height + (even ? height % 2 : 0)};
}

VideoEncoder::~VideoEncoder() = default;
VideoEncoder::VideoEncoder(VideoEncoder&&) noexcept = default;
const std::string& VideoEncoder::encoder_name() const {
  return state_->name;
}
const std::string& VideoEncoder::codec_name() const {
  return state_->codec_name;
}
int VideoEncoder::coded_width() const {
  return state_->coded_width;
}
int VideoEncoder::coded_height() const {
  return state_->coded_height;
}

// Sets the format of all frames from the first one, and opens the encoder. Converts the frame
// before that: this can fail, and SVT-AV1 cannot be closed before it has a frame.
AvFramePtr VideoEncoder::State::open(const Frame& first) {
  Frame like;  // Properties of all frames, without planes.
  // A mov cannot store whether the gray of ffv1 is full range, and readers disagree.
  const bool keep = kind->any_layout && first.layout != PixelLayout::gray;
  const bool deep = options.bit_depth == 10;
  like.layout = deep ? PixelLayout::yuv420p10 : keep ? first.layout : PixelLayout::yuv420;
  like.width = options.width;
  like.height = options.height;
  like.color = first.color;
  like.hdr = first.hdr;
  like.chroma_location = first.chroma_location;
  like.full_range = first.full_range && kind->full_range;
  const bool rgb = like.layout == PixelLayout::rgb24;
  if (first.layout == PixelLayout::rgb24 && !rgb) {
    like.full_range = false;
    like.color = {};
  }
  // States the matrix, because players guess a missing matrix, in different ways. Pictures beside
  // those of a source keep the source's matrix, even if it is missing.
  if (!rgb && !options.splice) like.color.matrix = static_cast<std::uint8_t>(resolve_matrix(like));
  const AVPixelFormat format = rgb ? AV_PIX_FMT_BGR0 : to_av(like.layout);
  exporter = FrameExporter(like, format, coded_width, coded_height,
                           like.full_range ? Siting::center : Siting::left);
  AvFramePtr av = exporter.fit(first);
  session = take_encode_session(*kind, coded_width, coded_height);
  // All encoders on a GPU share a context. A context of their own would take uncounted memory.
  codec = open_encoder(*kind, options, coded_width, coded_height, format, like,
                       session ? session->gpu : -1,
                       session ? cuda_device(session->gpu).device : nullptr);
  video.hdr = like.hdr;
  open_container();
  return av;
}

void VideoEncoder::State::open_container() {
  video.time_base = to_av(options.time_base);
  video.sample_aspect = codec->sample_aspect_ratio;
  video.frame_rate = options.frame_rate.num > 0 ? to_av(options.frame_rate) : AVRational{0, 1};
  video.rotation = options.rotation;
  video.parameters.reset(not_null(avcodec_parameters_alloc()));
  avcodec_parameters_from_context(video.parameters.get(), codec.get());
  if (codec->codec_id != AV_CODEC_ID_H264 || options.bit_depth == 10) return;
  // Removes SEI, which has x264's settings and build.
  AVBSFContext* raw = nullptr;
  if (av_bsf_list_parse_str("filter_units=remove_types=6", &raw) < 0) return;
  filter.reset(raw);
  avcodec_parameters_copy(raw->par_in, video.parameters.get());
  raw->time_base_in = codec->time_base;
  if (av_bsf_init(raw) < 0) filter.reset();
}

void VideoEncoder::State::send(const AVFrame* frame) {
  clear_libav_message();
  if (const int result = avcodec_send_frame(codec.get(), frame); result < 0)
    fail("encoder '{}' failed: {}", name, libav_error_text(result));
  for (;;) {
    PacketPtr packet(not_null(av_packet_alloc()));
    const int result = avcodec_receive_packet(codec.get(), packet.get());
    if (result == AVERROR(EAGAIN)) return;
    if (result == AVERROR_EOF) break;
    if (result < 0) fail("encoder '{}' failed: {}", name, libav_error_text(result));
    pass(std::move(packet));
  }
  pass(nullptr);
}

// Passes a packet, or null for the end, through the filter if there is one.
void VideoEncoder::State::pass(PacketPtr packet) {
  if (!filter) {
    if (packet && codec->codec_id == AV_CODEC_ID_H264) packet = without_user_data(*packet);
    if (packet) keep(std::move(packet));
    return;
  }
  if (av_bsf_send_packet(filter.get(), packet.get()) < 0) fail("encoder '{}': bad packet", name);
  for (;;) {
    PacketPtr filtered(not_null(av_packet_alloc()));
    if (av_bsf_receive_packet(filter.get(), filtered.get()) < 0) return;
    keep(std::move(filtered));
  }
}

void VideoEncoder::State::keep(PacketPtr packet) {
  if (av_packet_make_refcounted(packet.get()) < 0) throw std::bad_alloc();
  const std::size_t at = video.packets.size();
  // The encoder was told to give one packet a frame, in order. So a packet has its frame's time.
  const bool known = at < times.size();
  const std::int64_t wanted = known && !kind->own_clock ? times[at] : static_cast<std::int64_t>(at);
  if (!known || packet->pts != wanted)
    fail("encoder '{}' dropped or reordered frames; use another encoder", name);
  packet->pts = packet->dts = times[at];
  video.packets.push_back(std::move(packet));
}

void VideoEncoder::add(const Frame& frame) {
  State& s = *state_;
  if (s.finished) fail("a finished clip takes no more frames");
  if (!s.codec) s.first_pts = frame.pts;
  const bool deep = frame.layout == PixelLayout::yuv420p10;
  if (deep != (s.options.bit_depth == 10))
    fail("the frame at pts {} is {}, the clip is not", frame.pts, deep ? "HDR" : "SDR");
  const std::int64_t time = frame.pts - s.first_pts;
  if (!s.times.empty() && time <= s.times.back())
    fail("frame at pts {} does not come after the previous frame", frame.pts);
  const AvFramePtr av = s.codec ? s.exporter.fit(frame) : s.open(frame);
  av->pts = s.kind->own_clock ? static_cast<std::int64_t>(s.times.size()) : time;
  if (s.codec->flags & AV_CODEC_FLAG_QSCALE) av->quality = s.codec->global_quality;
  s.times.push_back(time);
  s.last_duration = frame.duration;
  s.send(av.get());
}

void VideoEncoder::add(const RgbImage& image, std::int64_t pts) {
  Frame frame = to_frame(image);
  frame.pts = pts;
  add(frame);
}

void VideoEncoder::add_audio(const AudioTrack& track) {
  if (!track.empty()) state_->audio = track;
}

void VideoEncoder::State::flush() {
  if (times.empty()) fail("no frame to encode");
  if (finished) fail("the clip is already finished");
  finished = true;
  send(nullptr);
  if (video.packets.size() != times.size())
    fail("encoder '{}' gave {} pictures for {} frames", name, video.packets.size(), times.size());
}

// Frees the session for others. Encoders that are not on a GPU are closed by the destructor.
void VideoEncoder::State::close() {
  if (!session) return;
  filter.reset();
  codec.reset();
  session.reset();
}

std::string VideoEncoder::finish() {
  State& s = *state_;
  s.flush();
  auto& packets = s.video.packets;
  for (std::size_t i = 0; i + 1 < packets.size(); ++i)
    packets[i]->duration = s.times[i + 1] - s.times[i];
  packets.back()->duration = s.final_duration();
  s.close();
  return mux_mp4(s.video, s.audio.data());
}

CodedVideo VideoEncoder::finish_piece() {
  State& s = *state_;
  s.flush();
  auto data = std::make_shared<CodedVideo::Data>();
  static_cast<MuxStream&>(*data) = std::move(s.video);
  for (const PacketPtr& packet : data->packets)
    packet->pts += s.first_pts;
  if (s.codec->codec_id == AV_CODEC_ID_HEVC) give_splice_id(*data);
  s.close();
  return CodedVideo(std::move(data));
}

std::int64_t VideoEncoder::State::final_duration() const {
  if (last_duration > 0) return last_duration;
  if (times.size() > 1) return times.back() - times[times.size() - 2];
  const AVRational rate = video.frame_rate.num > 0 ? video.frame_rate : AVRational{25, 1};
  return std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(rate), video.time_base));
}

}  // namespace vfm::media
