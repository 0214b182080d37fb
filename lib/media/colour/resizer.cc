// SPDX-License-Identifier: Apache-2.0
#include "media/colour/resizer.h"

#include <utility>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

/// Keeps the matrix of the whole picture, because resolve_matrix() depends on the size.
void keep_matrix(const Frame& whole, Frame& part) {
  if (whole.layout != PixelLayout::rgb24)
    part.color.matrix = static_cast<std::uint8_t>(resolve_matrix(whole));
}

SwsPtr make_converter(const Frame& from, int width, int height) {
  SwsPtr sws(not_null(sws_alloc_context()));
  const auto set = [&](const char* name, std::int64_t value) {
    av_opt_set_int(sws.get(), name, value, 0);
  };
  set("srcw", from.width), set("srch", from.height), set("src_format", to_av(from.layout));
  set("dstw", width), set("dsth", height), set("dst_format", to_av(from.layout));
  set("sws_flags", SWS_BICUBIC | kSwsExact);
  set("src_range", from.full_range), set("dst_range", from.full_range);
  // Where chroma samples lie matters when the resolution changes. Horizontally: on the left luma
  // sample in video, between luma samples in JPEG. Vertically: between rows, except in HDR video
  // that says otherwise.
  if (half_columns(from.layout) && !from.full_range)
    set("src_h_chr_pos", 0), set("dst_h_chr_pos", 0);
  const int below = from.chroma_location == AVCHROMA_LOC_TOPLEFT ? 0 : 128;
  if (half_rows(from.layout)) set("src_v_chr_pos", below), set("dst_v_chr_pos", below);
  const int* matrix = sws_matrix(resolve_matrix(from));
  sws_setColorspaceDetails(sws.get(), matrix, from.full_range, matrix, from.full_range, 0, 1 << 16,
                           1 << 16);
  if (sws_init_context(sws.get(), nullptr, nullptr) < 0)
    fail("cannot scale {}x{} pixels to {}x{}", from.width, from.height, width, height);
  return sws;
}

}  // namespace

Frame crop_frame(const Frame& frame, const Rectangle& r) {
  Frame part = frame;
  part.width = r.width;
  part.height = r.height;
  for (int p = 0; p < plane_count(frame.layout); ++p) {
    const bool half_x = p > 0 && half_columns(frame.layout);
    const bool half_y = p > 0 && half_rows(frame.layout);
    const int x = half_x ? r.x / 2 : r.x, y = half_y ? r.y / 2 : r.y;
    const int sample_bytes = plane_row_bytes(frame, 0) / frame.width;
    part.plane[p] = frame.plane[p] + static_cast<std::ptrdiff_t>(y) * frame.stride[p] +
                    static_cast<std::ptrdiff_t>(x) * sample_bytes;
  }
  keep_matrix(frame, part);
  return part;
}

Rectangle rotate_rectangle(const Rectangle& r, int width, int height, int degrees, bool mirror) {
  Rectangle out = r;
  if (mirror) out.x = width - out.x - out.width;
  switch (degrees) {
    case 90:
      return {height - out.y - out.height, out.x, out.height, out.width};
    case 180:
      return {width - out.x - out.width, height - out.y - out.height, out.width, out.height};
    case 270:
      return {out.y, width - out.x - out.width, out.height, out.width};
    default:
      return out;
  }
}

struct Resizer::State {
  int width = 0, height = 0;
  SwsPtr sws;
  Frame built_for;  // Without planes.
};

Resizer::Resizer(int width, int height) : state_(std::make_unique<State>()) {
  state_->width = width;
  state_->height = height;
}
Resizer::~Resizer() = default;
Resizer::Resizer(Resizer&&) noexcept = default;

Frame Resizer::resize(const Frame& frame) {
  State& s = *state_;
  if (frame.width <= 0 || frame.height <= 0 || !frame.plane[0]) fail("the frame to scale is empty");
  if (frame.width == s.width && frame.height == s.height) return frame;
  const Frame& b = s.built_for;
  if (!s.sws || b.layout != frame.layout || b.width != frame.width || b.height != frame.height ||
      b.full_range != frame.full_range || b.color != frame.color ||
      b.chroma_location != frame.chroma_location) {
    s.sws = make_converter(frame, s.width, s.height);
    s.built_for = frame;
    s.built_for.owner.reset();
  }
  Frame out = make_frame(frame.layout, s.width, s.height);
  // swscale reads four plane pointers for all formats.
  const std::uint8_t* from[4] = {frame.plane[0], frame.plane[1], frame.plane[2], nullptr};
  const int from_stride[4] = {frame.stride[0], frame.stride[1], frame.stride[2], 0};
  std::uint8_t* to[4] = {};
  int to_stride[4] = {};
  for (int p = 0; p < plane_count(out.layout); ++p) {
    to[p] = writable(out, p);
    to_stride[p] = out.stride[p];
  }
  sws_scale(s.sws.get(), from, from_stride, 0, frame.height, to, to_stride);
  copy_facts(frame, out);
  keep_matrix(frame, out);
  return out;
}

}  // namespace vfm::media
