// SPDX-License-Identifier: Apache-2.0
#include "media/container/splice.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "media/container/coded_units.h"
#include "media/container/mux.h"
#include "media/container/splice_plan.h"
#include "media/decode/bounded.h"
#include "media/encode/encoder.h"

namespace vfm::media {
namespace {

struct SpliceCodec {
  const char* codec;
  const char* encoder;
};
constexpr SpliceCodec kSpliceCodecs[] = {
    {"h264", "libx264"}, {"hevc", "libx265"}, {"vp9", "libvpx-vp9"}, {"av1", "libsvtav1"}};

// Decodes the first picture of a piece with a new decoder. Returns null if there is none.
AvFramePtr decode_first(const CodedVideo& video) {
  const CodedVideo::Data& data = *video.data();
  init_libav();
  const AVCodec* decoder = avcodec_find_decoder(data.parameters->codec_id);
  CodecPtr codec(not_null(avcodec_alloc_context3(decoder)));
  // The container's colours are left out, because readers of the clip may not get them.
  const auto size = static_cast<std::size_t>(data.parameters->extradata_size);
  if (size > 0) {
    codec->extradata =
        static_cast<std::uint8_t*>(not_null(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE)));
    std::memcpy(codec->extradata, data.parameters->extradata, size);
    codec->extradata_size = data.parameters->extradata_size;
  }
  codec->max_pixels = codec_max_pixels();
  codec->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_UNALIGNED;
  codec->thread_count = 1;
  AvFramePtr frame(not_null(av_frame_alloc()));
  if (avcodec_open2(codec.get(), decoder, nullptr) < 0 ||
      avcodec_send_packet(codec.get(), data.packets[0].get()) < 0 ||
      avcodec_send_packet(codec.get(), nullptr) < 0 ||
      avcodec_receive_frame(codec.get(), frame.get()) < 0)
    return nullptr;
  return frame;
}

// Bounds decode_first(), because a hostile file's packets may keep a decoder busy for ever.
AvFramePtr first_picture(const CodedVideo& video) {
  const auto picture = std::make_shared<AvFramePtr>();
  run_bounded("a clip's first copied picture",
              [video, picture] { *picture = decode_first(video); });
  return std::move(*picture);
}

struct Look {
  int width = 0, height = 0, format = 0;
  AVRational aspect{1, 1};
  bool full_range = false;
  int matrix = 2, primaries = 2, transfer = 2;
};

// The range is compared separately.
int compared_format(int format) {
  return format == AV_PIX_FMT_YUVJ420P ? AV_PIX_FMT_YUV420P : format;
}

AVRational or_square(AVRational aspect) {
  return aspect.num > 0 ? aspect : AVRational{1, 1};
}

Look look_of(const AVFrame& f) {
  return {f.width,
          f.height,
          compared_format(f.format),
          or_square(f.sample_aspect_ratio),
          f.color_range == AVCOL_RANGE_JPEG,
          f.colorspace,
          f.color_primaries,
          f.color_trc};
}

Look look_of(const AVCodecParameters& p) {
  return {p.width,
          p.height,
          compared_format(p.format),
          or_square(p.sample_aspect_ratio),
          p.color_range == AVCOL_RANGE_JPEG,
          p.color_space,
          p.color_primaries,
          p.color_trc};
}

const char* difference(const Look& a, const Look& b) {
  if (a.width != b.width || a.height != b.height) return "size";
  if (a.format != b.format) return "pixel format";
  if (av_cmp_q(a.aspect, b.aspect) != 0) return "shape of pixels";
  if (a.full_range != b.full_range) return "range";
  if (a.matrix != b.matrix) return "matrix";
  if (a.primaries != b.primaries) return "primaries";
  return a.transfer != b.transfer ? "transfer" : nullptr;
}

bool same_picture(const AVFrame& av, const Frame& frame) {
  if (av.width != frame.width || av.height != frame.height || av.interlaced_frame) return false;
  for (int p = 0; p < plane_count(frame.layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y)
      if (std::memcmp(av.data[p] + std::ptrdiff_t{y} * av.linesize[p],
                      frame.plane[p] + std::ptrdiff_t{y} * frame.stride[p],
                      static_cast<std::size_t>(plane_row_bytes(frame, p))) != 0)
        return false;
  return true;
}

bool is_format(const AVFrame& av, const Frame& frame) {
  const auto format = static_cast<AVPixelFormat>(av.format);
  if (frame.layout == PixelLayout::yuv420)
    return format == AV_PIX_FMT_YUV420P || format == AV_PIX_FMT_YUVJ420P;
  return frame.layout == PixelLayout::yuv420p10 && format == AV_PIX_FMT_YUV420P10;
}

// Joins the parameter sets of the pieces, each once. The source's sets come first, because the mp4
// header takes profile and level from the first.
void join_parameter_sets(AVCodecParameters& parameters,
                         const std::vector<const CodedVideo::Data*>& pieces) {
  Units all;
  for (const CodedVideo::Data* piece : pieces)
    for (const Unit set : parameter_sets(*piece->parameters))
      if (is_parameter_set(parameters.codec_id, unit_type(parameters.codec_id, set)) &&
          std::find(all.begin(), all.end(), set) == all.end())
        all.push_back(set);
  const auto ours = [&](Unit set) { return has_splice_id(parameters.codec_id, set); };
  const std::size_t kinds = parameters.codec_id == AV_CODEC_ID_HEVC ? 3 : 2;
  if (static_cast<std::size_t>(std::count_if(all.begin(), all.end(), ours)) > kinds)
    fail("the encoder made two kinds of pictures");
  set_extradata(parameters, join_units(all));
}

}  // namespace

std::string splice_encoder(const std::string& codec) {
  for (const SpliceCodec& known : kSpliceCodecs)
    if (codec == known.codec && avcodec_find_encoder_by_name(known.encoder)) return known.encoder;
  return {};
}

std::uint64_t CodedVideo::bytes() const {
  std::uint64_t bytes = 0;
  if (data_)
    for (const PacketPtr& packet : data_->packets)
      bytes += static_cast<std::uint64_t>(packet->size);
  return bytes;
}

std::string check_splice(const CodedVideo& copied, const Frame& frame, const CodedVideo& encoded) {
  const AvFramePtr first = first_picture(copied);
  if (!first || !is_format(*first, frame) || !same_picture(*first, frame))
    return "its key frame decodes to another picture without what comes before it";
  if (encoded.empty()) return {};
  // x264 and x265 report the properties that they were given. Other encoders' output is decoded.
  Look other;
  if (has_nal_units(encoded.data()->parameters->codec_id)) {
    other = look_of(*encoded.data()->parameters);
  } else if (const AvFramePtr picture = first_picture(encoded)) {
    other = look_of(*picture);
  }
  const char* what = difference(look_of(*first), other);
  return what ? std::string("what is encoded for it would have another ") + what : std::string();
}

std::string splice_mp4(const CodedVideo& head, const CodedVideo& copied, const CodedVideo& tail,
                       std::int64_t end, const AudioTrack& audio) {
  std::vector<const CodedVideo::Data*> in_order, source_first{copied.data()};
  for (const CodedVideo* piece : {&head, &copied, &tail}) {
    if (piece->empty()) continue;
    in_order.push_back(piece->data());
    if (piece != &copied) source_first.push_back(piece->data());
  }
  const CodedVideo::Data& like = *copied.data();
  MuxStream video;
  video.parameters.reset(not_null(avcodec_parameters_alloc()));
  if (avcodec_parameters_copy(video.parameters.get(), like.parameters.get()) < 0)
    throw std::bad_alloc();
  if (has_nal_units(like.parameters->codec_id))
    join_parameter_sets(*video.parameters, source_first);
  video.time_base = like.time_base;
  video.sample_aspect = like.sample_aspect;
  video.frame_rate = like.frame_rate;
  video.hdr = like.hdr;

  std::vector<std::int64_t> times;
  for (const CodedVideo::Data* piece : in_order)
    for (const PacketPtr& packet : piece->packets)
      times.push_back(packet->pts);
  std::vector<std::int64_t> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  sorted.push_back(end);
  std::vector<std::int64_t> decoded = decoding_times(times);
  // A track is as long as its samples in decoding order. If frames at the end last longer than
  // those at the begin, the track would end before its last frame.
  const auto last = std::lower_bound(sorted.begin(), sorted.end(), times.back());
  decoded[0] =
      std::min(decoded[0], decoded.back() + *(last + 1) - times.back() - (end - sorted[0]));
  for (const CodedVideo::Data* piece : in_order)
    for (const PacketPtr& packet : piece->packets) {
      PacketPtr copy(not_null(av_packet_alloc()));
      if (av_packet_ref(copy.get(), packet.get()) < 0) throw std::bad_alloc();
      const std::size_t at = video.packets.size();
      const auto here = std::lower_bound(sorted.begin(), sorted.end(), times[at]);
      copy->pts = times[at] - sorted[0];
      copy->dts = decoded[at] - sorted[0];
      copy->duration = *(here + 1) - *here;
      video.packets.push_back(std::move(copy));
    }
  return mux_mp4(video, audio.data());
}

}  // namespace vfm::media
