// AVFrame to Frame: what decoders give.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

// The layout that loses least. 4:1:1 and 4:4:0 have no layout of their own: the one with at least
// their resolution in both directions is taken, 4:1:0 becomes 4:2:0.
PixelLayout nearest_layout(const AVPixFmtDescriptor& format) {
  const bool color = format.nb_components >= 3 || (format.flags & AV_PIX_FMT_FLAG_PAL);
  if (!color) return PixelLayout::gray;
  if (format.flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER))
    return PixelLayout::rgb24;
  if (format.log2_chroma_w == 0) return PixelLayout::yuv444;
  return format.log2_chroma_h == 0 ? PixelLayout::yuv422 : PixelLayout::yuv420;
}

// True when the planes can be used as they lie in memory.
bool is_plain(int format, PixelLayout& layout) {
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

bool is_full_range(const AVFrame& av, PixelLayout layout) {
  if (layout == PixelLayout::rgb24) return true;
  if (av.format == AV_PIX_FMT_YUVJ420P || av.format == AV_PIX_FMT_YUVJ422P ||
      av.format == AV_PIX_FMT_YUVJ444P || av.format == AV_PIX_FMT_YUVJ440P ||
      av.format == AV_PIX_FMT_YUVJ411P)
    return true;
  // Gray that says nothing is full range, as FFmpeg's own converter takes it.
  if (layout == PixelLayout::gray) return av.color_range != AVCOL_RANGE_MPEG;
  return av.color_range == AVCOL_RANGE_JPEG;
}

// swscale has no "J" formats of its own any more: range is a parameter.
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

}  // namespace

AVPixelFormat to_av(PixelLayout layout) {
  switch (layout) {
    case PixelLayout::yuv420:
      return AV_PIX_FMT_YUV420P;
    case PixelLayout::yuv422:
      return AV_PIX_FMT_YUV422P;
    case PixelLayout::yuv444:
      return AV_PIX_FMT_YUV444P;
    case PixelLayout::gray:
      return AV_PIX_FMT_GRAY8;
    case PixelLayout::rgb24:
      break;
  }
  return AV_PIX_FMT_RGB24;
}

const int* sws_matrix(int matrix) {
  // H.273's numbers are swscale's too, except that it knows one BT.2020.
  return sws_getCoefficients(matrix == 10 ? SWS_CS_BT2020 : matrix);
}

Frame FrameImporter::convert(const AVFrame& av, PixelLayout layout, bool full_range) {
  Frame frame = make_frame(layout, av.width, av.height);
  frame.full_range = full_range;
  if (!sws_ || av.width != width_ || av.height != height_ || av.format != format_ ||
      full_range != full_range_) {
    sws_.reset(sws_getContext(av.width, av.height, without_range(av.format), av.width, av.height,
                              to_av(layout), SWS_BICUBIC | kSwsExact, nullptr, nullptr, nullptr));
    if (!sws_)
      fail("cannot convert pixel format {}",
           av_get_pix_fmt_name(static_cast<AVPixelFormat>(av.format)));
    // From YUV to YUV (and RGB to RGB) range and matrix stay as they are.
    const int* table = sws_getCoefficients(SWS_CS_DEFAULT);
    sws_setColorspaceDetails(sws_.get(), table, full_range, table, full_range, 0, 1 << 16, 1 << 16);
    width_ = av.width, height_ = av.height, format_ = av.format, full_range_ = full_range;
  }
  std::uint8_t* planes[4] = {};
  int strides[4] = {};
  for (int p = 0; p < plane_count(layout); ++p) {
    planes[p] = writable(frame, p);
    strides[p] = frame.stride[p];
  }
  sws_scale(sws_.get(), av.data, av.linesize, 0, av.height, planes, strides);
  return frame;
}

Frame FrameImporter::import(AvFramePtr av) {
  const auto* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(av->format));
  if (!descriptor || (descriptor->flags & AV_PIX_FMT_FLAG_HWACCEL) || av->width <= 0 ||
      av->height <= 0)
    fail("the decoder gave a picture that cannot be read");
  Frame frame;
  const bool key = av->key_frame != 0;
  const std::int64_t pts = av->best_effort_timestamp, duration = av->pkt_duration;
  Color color{static_cast<std::uint8_t>(av->color_primaries),
              static_cast<std::uint8_t>(av->color_trc), static_cast<std::uint8_t>(av->colorspace)};
  PixelLayout layout;
  // A bottom-up picture (negative stride) is converted too: no reader of Frame expects one.
  if (is_plain(av->format, layout) && av->linesize[0] > 0) {
    frame.layout = layout;
    frame.width = av->width;
    frame.height = av->height;
    frame.full_range = is_full_range(*av, layout);
    for (int p = 0; p < plane_count(layout); ++p) {
      frame.plane[p] = av->data[p];
      frame.stride[p] = av->linesize[p];
    }
    frame.owner = std::shared_ptr<const AVFrame>(av.release(), [](const AVFrame* f) {
      auto* mutable_frame = const_cast<AVFrame*>(f);
      av_frame_free(&mutable_frame);
    });
  } else {
    layout = nearest_layout(*descriptor);
    frame = convert(*av, layout, is_full_range(*av, layout));
  }
  // RGB carries no matrix; 0 (RGB) in a YUV frame is a mistake of the file.
  if (layout == PixelLayout::rgb24 || color.matrix == 0) color.matrix = 2;
  frame.color = color;
  frame.key = key;
  frame.pts = pts;
  frame.duration = std::max<std::int64_t>(0, duration);
  return frame;
}

}  // namespace vfm::media
