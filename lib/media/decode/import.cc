// Converts decoders' AVFrames to Frames.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "media/colour/hdr_metadata.h"
#include "media/decode/hardware_decoder.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

// Returns the layout that loses least. 4:1:1 and 4:4:0 get a layout with at least their resolution
// in both directions. 4:1:0 becomes 4:2:0.
PixelLayout nearest_layout(const AVPixFmtDescriptor& format) {
  const bool color = format.nb_components >= 3 || (format.flags & AV_PIX_FMT_FLAG_PAL);
  if (!color) return PixelLayout::gray;
  if (format.flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER))
    return PixelLayout::rgb24;
  if (format.log2_chroma_w == 0) return PixelLayout::yuv444;
  return format.log2_chroma_h == 0 ? PixelLayout::yuv422 : PixelLayout::yuv420;
}

bool is_full_range(const AVFrame& av, PixelLayout layout) {
  if (layout == PixelLayout::rgb24) return true;
  if (av.format == AV_PIX_FMT_YUVJ420P || av.format == AV_PIX_FMT_YUVJ422P ||
      av.format == AV_PIX_FMT_YUVJ444P || av.format == AV_PIX_FMT_YUVJ440P ||
      av.format == AV_PIX_FMT_YUVJ411P)
    return true;
  // Gray without a range is full range, as for FFmpeg's own converter.
  if (layout == PixelLayout::gray) return av.color_range != AVCOL_RANGE_MPEG;
  return av.color_range == AVCOL_RANGE_JPEG;
}

// swscale no longer has "J" formats of these. Range is a parameter.
AVPixelFormat without_range(int format) {
  switch (format) {
    case AV_PIX_FMT_YUVJ411P:
      return AV_PIX_FMT_YUV411P;
    case AV_PIX_FMT_YUVJ440P:
      return AV_PIX_FMT_YUV440P;
    default:
      return static_cast<AVPixelFormat>(format);
  }
}

struct AvFormats {
  AVPixelFormat plain, with_alpha;
};
AvFormats av_formats(PixelLayout layout) {
  switch (layout) {
    case PixelLayout::yuv420:
      return {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVA420P};
    case PixelLayout::yuv422:
      return {AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUVA422P};
    case PixelLayout::yuv444:
      return {AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUVA444P};
    case PixelLayout::gray:
      return {AV_PIX_FMT_GRAY8, AV_PIX_FMT_YA8};
    case PixelLayout::yuv420p10:
      return {AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUVA420P10};
    case PixelLayout::rgb24:
      break;
  }
  return {AV_PIX_FMT_RGB24, AV_PIX_FMT_RGBA};
}

// In the stream's time base, or 0 if the container has no duration.
std::int64_t duration_of(const AVFrame& av) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)  // FFmpeg 6.
  return av.duration;
#else
  return av.pkt_duration;
#endif
}

Frame said_by(const AVFrame& av) {
  Frame said;
  said.color = {static_cast<std::uint8_t>(av.color_primaries),
                static_cast<std::uint8_t>(av.color_trc), static_cast<std::uint8_t>(av.colorspace)};
  said.key = av.key_frame != 0;
  said.interlaced = av.interlaced_frame != 0;
  said.top_first = av.top_field_first != 0;
  said.pts = av.best_effort_timestamp;
  said.duration = std::max<std::int64_t>(0, duration_of(av));
  return said;
}

// Writes one row of plane `p` as it looks before a black background. `from` has the layout's format
// with alpha.
void lay_over_black(const AVFrame& from, const Frame& to, int p, int y, std::uint8_t* row) {
  const auto line = [&](int plane, int at) {
    return from.data[plane] + static_cast<std::ptrdiff_t>(at) * from.linesize[plane];
  };
  const bool rgb = to.layout == PixelLayout::rgb24, packed = rgb || to.layout == PixelLayout::gray;
  const int colors = rgb ? 3 : 1, step = packed ? colors + 1 : 1;
  const bool half_x = p > 0 && to.layout != PixelLayout::yuv444;
  const bool half_y = p > 0 && to.layout == PixelLayout::yuv420;
  const int black = p > 0 ? 128 : rgb || to.full_range ? 0 : 16;
  const std::uint8_t* alpha = line(packed ? 0 : 3, half_y ? 2 * y : y) + (packed ? colors : 0);
  const std::uint8_t* in = line(p, y);
  for (int x = 0; x < plane_row_bytes(to, p) / colors; ++x)
    for (int c = 0; c < colors; ++c) {
      const int a = alpha[(half_x ? 2 * x : x) * step], sample = in[x * step + c] - black;
      const int scaled = (std::abs(sample) * a + 127) / 255;
      row[x * colors + c] = static_cast<std::uint8_t>(black + (sample < 0 ? -scaled : scaled));
    }
}

}  // namespace

std::string transfer_name(int transfer) {
  const char* name = av_color_transfer_name(static_cast<AVColorTransferCharacteristic>(transfer));
  return name ? name : "unknown";
}

std::string primaries_name(int primaries) {
  const char* name = av_color_primaries_name(static_cast<AVColorPrimaries>(primaries));
  return name ? name : "unknown";
}

bool lies_as_frame(int format, PixelLayout& layout) {
  switch (format) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUVJ420P:
      layout = PixelLayout::yuv420;
      return true;
    case AV_PIX_FMT_YUV422P:
    case AV_PIX_FMT_YUVJ422P:
      layout = PixelLayout::yuv422;
      return true;
    case AV_PIX_FMT_YUV444P:
    case AV_PIX_FMT_YUVJ444P:
      layout = PixelLayout::yuv444;
      return true;
    case AV_PIX_FMT_GRAY8:
      layout = PixelLayout::gray;
      return true;
    case AV_PIX_FMT_RGB24:
      layout = PixelLayout::rgb24;
      return true;
    default:
      return false;
  }
}

AVPixelFormat to_av(PixelLayout layout) {
  return av_formats(layout).plain;
}

const int* sws_matrix(int matrix) {
  // swscale has the numbers of H.273, but only one BT.2020.
  return sws_getCoefficients(matrix == 10 ? SWS_CS_BT2020 : matrix);
}

// Converts a picture to another format of the same range and matrix. Also converts RGB to YUV, with
// the matrix of BT.2020.
AvFramePtr FrameImporter::rescale(const AVFrame& av, AVPixelFormat format, bool full_range) {
  if (!sws_ || av.width != width_ || av.height != height_ || av.format != format_ ||
      format != to_ || full_range != full_range_) {
    sws_.reset(sws_getContext(av.width, av.height, without_range(av.format), av.width, av.height,
                              format, SWS_BICUBIC | kSwsExact, nullptr, nullptr, nullptr));
    if (!sws_)
      fail_as(Cause::decode, "cannot convert pixel format {}",
              av_get_pix_fmt_name(static_cast<AVPixelFormat>(av.format)));
    const int* table =
        sws_getCoefficients(format == AV_PIX_FMT_YUV420P10 ? SWS_CS_BT2020 : SWS_CS_DEFAULT);
    sws_setColorspaceDetails(sws_.get(), table, full_range, table, full_range, 0, 1 << 16, 1 << 16);
    width_ = av.width, height_ = av.height, format_ = av.format, to_ = format;
    full_range_ = full_range;
  }
  AvFramePtr to(not_null(av_frame_alloc()));
  to->format = format;
  to->width = av.width;
  to->height = av.height;
  if (av_frame_get_buffer(to.get(), 64) < 0) throw std::bad_alloc();
  sws_scale(sws_.get(), av.data, av.linesize, 0, av.height, to->data, to->linesize);
  return to;
}

Frame FrameImporter::convert(const AVFrame& av, PixelLayout layout, bool full_range) {
  const auto* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(av.format));
  const bool alpha = (descriptor->flags & (AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL)) != 0;
  const AvFormats formats = av_formats(layout);
  const AvFramePtr from = rescale(av, alpha ? formats.with_alpha : formats.plain, full_range);
  Frame frame = make_frame(layout, av.width, av.height);
  frame.full_range = full_range;
  for (int p = 0; p < plane_count(layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y) {
      std::uint8_t* row = writable(frame, p) + static_cast<std::ptrdiff_t>(y) * frame.stride[p];
      if (alpha)
        lay_over_black(*from, frame, p, y, row);
      else
        std::memcpy(row, from->data[p] + static_cast<std::ptrdiff_t>(y) * from->linesize[p],
                    static_cast<std::size_t>(plane_row_bytes(frame, p)));
    }
  return frame;
}

Frame FrameImporter::refer(AvFramePtr av, PixelLayout layout, bool full_range) {
  Frame frame;
  frame.layout = layout;
  frame.width = av->width;
  frame.height = av->height;
  frame.full_range = full_range;
  for (int p = 0; p < plane_count(layout); ++p) {
    frame.plane[p] = av->data[p];
    frame.stride[p] = av->linesize[p];
  }
  frame.owner = std::shared_ptr<const AVFrame>(av.release(), [](const AVFrame* f) {
    auto* mutable_frame = const_cast<AVFrame*>(f);
    av_frame_free(&mutable_frame);
  });
  return frame;
}

// Converts to yuv420p10 in the picture's own colours. Unknown properties become BT.2020.
Frame FrameImporter::deepen(AvFramePtr av) {
  const auto* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(av->format));
  const bool rgb = (descriptor->flags & AV_PIX_FMT_FLAG_RGB) != 0;
  const bool full = !rgb && is_full_range(*av, PixelLayout::yuv420);
  const auto or_bt2020 = [](int number) {
    return static_cast<std::uint8_t>(number == 0 || number == 2 ? 9 : number);
  };
  const Color color{or_bt2020(av->color_primaries), static_cast<std::uint8_t>(av->color_trc),
                    rgb ? std::uint8_t{9} : or_bt2020(av->colorspace)};
  const HdrMetadata hdr = hdr_of(*av, hdr_);
  const bool same_chroma = descriptor->log2_chroma_w == 1 && descriptor->log2_chroma_h == 1;
  const auto location = static_cast<std::uint8_t>(same_chroma ? av->chroma_location : 0);
  if (av->format != AV_PIX_FMT_YUV420P10 || av->linesize[0] < 0)
    av = rescale(*av, AV_PIX_FMT_YUV420P10, full);
  Frame frame = refer(std::move(av), PixelLayout::yuv420p10, full);
  frame.color = color;
  frame.hdr = hdr;
  frame.chroma_location = location;
  return frame;
}

bool is_plain_sdr(const AVFrame& av) {
  return !is_hdr(av.color_trc) && !is_wide_sdr(av.color_trc, av.color_primaries);
}

Frame frame_on_gpu(const AVFrame& av) {
  Frame frame = said_by(av);
  frame.layout = PixelLayout::yuv420;
  frame.width = av.width - static_cast<int>(av.crop_left);
  frame.height = av.height - static_cast<int>(av.crop_top);
  frame.full_range = av.color_range == AVCOL_RANGE_JPEG;
  if (frame.color.matrix == 0) frame.color.matrix = 2;
  return frame;
}

Frame FrameImporter::import(AvFramePtr av) {
  const auto* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(av->format));
  if (!descriptor || (descriptor->flags & AV_PIX_FMT_FLAG_HWACCEL) || av->width <= 0 ||
      av->height <= 0)
    fail_as(Cause::decode, "the decoder gave a picture that cannot be read");
  const Frame said = said_by(*av);
  Frame frame;
  Color color = said.color;
  const bool hdr = is_hdr(color.transfer);
  const bool colored = descriptor->nb_components >= 3 && !(descriptor->flags & AV_PIX_FMT_FLAG_PAL);
  PixelLayout layout;
  if ((hdr || is_wide_sdr(color.transfer, color.primaries)) && colored) {
    frame = deepen(std::move(av));
    if (!hdr || !keep_hdr_) frame = mapper_.map(frame);
    color = frame.color;
    // A bottom-up picture (negative stride) is also converted, because readers of Frame expect
    // none.
  } else if (lies_as_frame(av->format, layout) && av->linesize[0] > 0) {
    const bool full = is_full_range(*av, layout);
    frame = refer(std::move(av), layout, full);
  } else {
    layout = nearest_layout(*descriptor);
    frame = convert(*av, layout, is_full_range(*av, layout));
  }
  // RGB has no matrix. Matrix 0 (RGB) in a YUV frame is a mistake in the file.
  if (frame.layout == PixelLayout::rgb24 || color.matrix == 0) color.matrix = 2;
  frame.color = color;
  frame.key = said.key;
  frame.interlaced = said.interlaced;
  frame.top_first = said.top_first;
  frame.pts = said.pts;
  frame.duration = said.duration;
  return frame;
}

}  // namespace vfm::media
