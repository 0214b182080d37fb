// Converts Frames to AVFrames for encoders.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

Frame add_neutral_chroma(const Frame& gray) {
  Frame frame = make_frame(PixelLayout::yuv420, gray.width, gray.height);
  for (int y = 0; y < gray.height; ++y)
    std::memcpy(writable(frame, 0) + static_cast<std::ptrdiff_t>(y) * frame.stride[0],
                gray.plane[0] + static_cast<std::ptrdiff_t>(y) * gray.stride[0],
                static_cast<std::size_t>(gray.width));
  for (int p = 1; p < 3; ++p)
    std::memset(
        writable(frame, p), 128,
        static_cast<std::size_t>(frame.stride[p]) * static_cast<std::size_t>(plane_rows(frame, p)));
  frame.full_range = gray.full_range;
  frame.color = gray.color;
  return frame;
}

void copy_padded(const std::uint8_t* from, int stride, int row_bytes, int rows, int sample_bytes,
                 std::uint8_t* to, int to_stride, int to_row_bytes, int to_rows) {
  for (int y = 0; y < to_rows; ++y) {
    const std::uint8_t* in = from + static_cast<std::ptrdiff_t>(std::min(y, rows - 1)) * stride;
    std::uint8_t* out = to + static_cast<std::ptrdiff_t>(y) * to_stride;
    std::memcpy(out, in, static_cast<std::size_t>(std::min(row_bytes, to_row_bytes)));
    for (int x = row_bytes; x < to_row_bytes; ++x)
      out[x] = out[x - sample_bytes];
  }
}

bool same_kind(const Frame& a, const Frame& b) {
  return a.layout == b.layout && a.width == b.width && a.height == b.height &&
         a.full_range == b.full_range;
}

void scale(SwsContext* sws, const Frame& from, std::uint8_t* const to[4], const int to_stride[4]) {
  // swscale reads four plane pointers for all formats.
  const std::uint8_t* planes[4] = {from.plane[0], from.plane[1], from.plane[2], nullptr};
  const int strides[4] = {from.stride[0], from.stride[1], from.stride[2], 0};
  sws_scale(sws, planes, strides, 0, from.height, to, to_stride);
}

}  // namespace

FrameExporter::FrameExporter(const Frame& like, AVPixelFormat format, int width, int height,
                             Siting siting)
    : like_(like), format_(format), width_(width), height_(height), siting_(siting) {}

void FrameExporter::build(const Frame& frame) {
  sws_.reset(not_null(sws_alloc_context()));
  const auto set = [&](const char* option, std::int64_t value) {
    av_opt_set_int(sws_.get(), option, value, 0);
  };
  set("srcw", frame.width), set("srch", frame.height), set("src_format", to_av(frame.layout));
  set("dstw", like_.width), set("dsth", like_.height),
      set("dst_format", like_.layout == PixelLayout::rgb24 ? format_ : to_av(like_.layout));
  set("sws_flags", SWS_BICUBIC | kSwsExact);
  set("src_range", frame.full_range), set("dst_range", like_.full_range);
  // The place of chroma matters if its resolution changes.
  if (half_columns(frame.layout) && !frame.full_range) set("src_h_chr_pos", 0);
  if (half_columns(like_.layout) && siting_ == Siting::left) set("dst_h_chr_pos", 0);
  const int below = like_.chroma_location == AVCHROMA_LOC_TOPLEFT ? 0 : 128;
  if (half_rows(frame.layout)) set("src_v_chr_pos", below);
  if (half_rows(like_.layout)) set("dst_v_chr_pos", below);
  sws_setColorspaceDetails(sws_.get(), sws_matrix(resolve_matrix(frame)), frame.full_range,
                           sws_matrix(resolve_matrix(like_)), like_.full_range, 0, 1 << 16,
                           1 << 16);
  if (sws_init_context(sws_.get(), nullptr, nullptr) < 0)
    fail("cannot convert pictures of {}x{} to {}x{}", frame.width, frame.height, like_.width,
         like_.height);
  built_for_ = frame;
  built_for_.owner.reset();
}

AvFramePtr FrameExporter::fit(const Frame& frame) {
  if (frame.width <= 0 || frame.height <= 0 || !frame.plane[0])
    fail("the frame to encode is empty");
  if (frame.layout == PixelLayout::gray && like_.layout != PixelLayout::gray)
    return fit(add_neutral_chroma(frame));
  AvFramePtr av(not_null(av_frame_alloc()));
  av->format = format_;
  av->width = width_;
  av->height = height_;
  if (av_frame_get_buffer(av.get(), 0) < 0) throw std::bad_alloc();
  av->color_range = like_.full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  av->color_primaries = static_cast<AVColorPrimaries>(like_.color.primaries);
  av->color_trc = static_cast<AVColorTransferCharacteristic>(like_.color.transfer);
  av->colorspace = static_cast<AVColorSpace>(like_.color.matrix);
  av->chroma_location = static_cast<AVChromaLocation>(like_.chroma_location);

  Frame scaled;
  const Frame* source = &frame;
  const bool other_format = like_.layout == PixelLayout::rgb24 && format_ != AV_PIX_FMT_RGB24;
  if (other_format || !same_kind(frame, like_)) {
    if (!sws_ || !same_kind(frame, built_for_)) build(frame);
    if (other_format) {
      scale(sws_.get(), frame, av->data, av->linesize);
      return av;
    }
    scaled = make_frame(like_.layout, like_.width, like_.height);
    std::uint8_t* planes[4] = {};
    int strides[4] = {};
    for (int p = 0; p < plane_count(scaled.layout); ++p) {
      planes[p] = writable(scaled, p);
      strides[p] = scaled.stride[p];
    }
    scale(sws_.get(), frame, planes, strides);
    source = &scaled;
  }
  Frame room;  // Has the sizes of the result's planes.
  room.layout = like_.layout;
  room.width = width_;
  room.height = height_;
  const int sample_bytes = room.layout == PixelLayout::rgb24       ? 3
                           : room.layout == PixelLayout::yuv420p10 ? 2
                                                                   : 1;
  for (int p = 0; p < plane_count(room.layout); ++p)
    copy_padded(source->plane[p], source->stride[p], plane_row_bytes(*source, p),
                plane_rows(*source, p), sample_bytes, av->data[p], av->linesize[p],
                plane_row_bytes(room, p), plane_rows(room, p));
  return av;
}

}  // namespace vfm::media
