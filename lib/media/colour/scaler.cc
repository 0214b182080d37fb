// SPDX-License-Identifier: Apache-2.0
#include "media/colour/scaler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "media/colour/resizer.h"
#include "media/colour/scale_rule.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

// Converts a span in parts of `size` to pixels. If `even` is set, the first pixel is even, for
// chroma.
void to_pixels(double begin, double extent, int size, bool even, int& first, int& count) {
  int from = static_cast<int>(std::lround(begin * size));
  int to = static_cast<int>(std::lround((begin + extent) * size));
  from = std::clamp(from, 0, size - 1);
  to = std::clamp(to, from + 1, size);
  if (even && from % 2 == 1) --from;
  first = from;
  count = to - from;
}

// The crop refers to the upright picture. Returns it as a rectangle of the stored picture.
Rectangle stored_crop(const Frame& frame, const ScaleOptions& o) {
  if (o.crop_width <= 0 || o.crop_height <= 0) return {0, 0, frame.width, frame.height};
  double x = o.crop_x, y = o.crop_y, w = o.crop_width, h = o.crop_height;
  switch (o.rotation) {
    case 90:
      x = o.crop_y, y = 1 - o.crop_x - w, std::swap(w, h);
      break;
    case 180:
      x = 1 - x - w, y = 1 - y - h;
      break;
    case 270:
      x = 1 - o.crop_y - h, y = o.crop_x, std::swap(w, h);
      break;
    default:
      break;
  }
  if (o.mirror) x = 1 - x - w;
  Rectangle r;
  to_pixels(x, w, frame.width, half_columns(frame.layout), r.x, r.width);
  to_pixels(y, h, frame.height, half_rows(frame.layout), r.y, r.height);
  return r;
}

struct Geometry {
  PixelLayout layout = PixelLayout::gray;
  bool full_range = false;
  int matrix = 0, width = 0, height = 0, to_width = 0, to_height = 0;
  bool averages = false;
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

SwsPtr make_converter(const Geometry& g) {
  SwsPtr sws(not_null(sws_alloc_context()));
  const auto set = [&](const char* name, std::int64_t value) {
    av_opt_set_int(sws.get(), name, value, 0);
  };
  set("srcw", g.width), set("srch", g.height), set("src_format", to_av(g.layout));
  set("dstw", g.to_width), set("dsth", g.to_height), set("dst_format", AV_PIX_FMT_RGB24);
  set("sws_flags", (g.averages ? SWS_AREA : SWS_BICUBIC) | kSwsExact);
  set("src_range", g.full_range), set("dst_range", 1);
  // Chroma lies on the left luma samples in video, and between luma samples in JPEG. Vertically, it
  // lies between the rows in both.
  if (!g.full_range && half_columns(g.layout)) set("src_h_chr_pos", 0);
  if (half_rows(g.layout)) set("src_v_chr_pos", 128);
  const int* from = sws_matrix(g.matrix);
  sws_setColorspaceDetails(sws.get(), from, g.full_range, sws_getCoefficients(SWS_CS_DEFAULT), 1, 0,
                           1 << 16, 1 << 16);
  if (sws_init_context(sws.get(), nullptr, nullptr) < 0)
    fail("cannot scale {}x{} pixels to {}x{}", g.width, g.height, g.to_width, g.to_height);
  return sws;
}

}  // namespace

ScaledPart scaled_part(const Frame& frame, const ScaleOptions& options) {
  const Rectangle part = stored_crop(frame, options);
  const bool turned = options.rotation == 90 || options.rotation == 270;
  int width = turned ? options.height : options.width;
  int height = turned ? options.width : options.height;
  if (width == 0 && height == 0) width = part.width, height = part.height;
  if (width <= 0 || height <= 0 || width > 65536 || height > 65536)
    fail("cannot scale a picture to {}x{} pixels", options.width, options.height);
  const bool shrinks = width <= part.width && height <= part.height;
  return {
      part, width, height, shrinks && !options.bicubic, resolve_matrix(frame), frame.full_range};
}

struct Scaler::State {
  Geometry geometry;
  SwsPtr sws;
  Frame result;  // Before rotation, with padding for vector code.
};

Scaler::Scaler() : state_(std::make_unique<State>()) {}
Scaler::~Scaler() = default;
Scaler::Scaler(Scaler&&) noexcept = default;
Scaler& Scaler::operator=(Scaler&&) noexcept = default;

void Scaler::to_rgb(const Frame& frame, const ScaleOptions& options, RgbImage& image) {
  if (frame.width <= 0 || frame.height <= 0 || !frame.plane[0]) fail("the frame to scale is empty");
  const ScaledPart to = scaled_part(frame, options);
  const Frame part = crop_frame(frame, to.part);

  State& s = *state_;
  const Geometry geometry{part.layout, part.full_range, to.matrix, part.width,
                          part.height, to.width,        to.height, to.averages};
  if (!s.sws || s.geometry != geometry) {
    s.sws = make_converter(geometry);
    s.geometry = geometry;
    s.result = make_frame(PixelLayout::rgb24, to.width, to.height);
  }
  // swscale reads four plane pointers for all formats.
  const std::uint8_t* from[4] = {part.plane[0], part.plane[1], part.plane[2], nullptr};
  const int from_stride[4] = {part.stride[0], part.stride[1], part.stride[2], 0};
  std::uint8_t* result[4] = {writable(s.result, 0)};
  const int result_stride[4] = {s.result.stride[0]};
  sws_scale(s.sws.get(), from, from_stride, 0, part.height, result, result_stride);

  const Frame upright = rotate_frame(s.result, options.rotation, options.mirror);
  image.width = upright.width;
  image.height = upright.height;
  const auto row = 3 * static_cast<std::size_t>(upright.width);
  image.pixels.resize(row * static_cast<std::size_t>(upright.height));
  for (int y = 0; y < upright.height; ++y)
    std::memcpy(image.pixels.data() + static_cast<std::size_t>(y) * row,
                upright.plane[0] + static_cast<std::ptrdiff_t>(y) * upright.stride[0], row);
}

Frame to_frame(const RgbImage& image) {
  Frame frame = make_frame(PixelLayout::rgb24, image.width, image.height);
  const auto row = 3 * static_cast<std::size_t>(image.width);
  if (image.pixels.size() < row * static_cast<std::size_t>(image.height))
    fail("an RGB image of {}x{} has only {} bytes", image.width, image.height, image.pixels.size());
  for (int y = 0; y < image.height; ++y)
    std::memcpy(writable(frame, 0) + static_cast<std::ptrdiff_t>(y) * frame.stride[0],
                image.pixels.data() + static_cast<std::size_t>(y) * row, row);
  return frame;
}

}  // namespace vfm::media
