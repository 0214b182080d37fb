// SPDX-License-Identifier: Apache-2.0
#include "media/colour/scale_rule.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

// Samples that are lit at a time, one a line. So memory does not grow with the picture.
constexpr int kLines = 64;
// The value of dark samples, and how much brighter lit ones are. Results stay within 16 bits, even
// with weights below 0 or above 1.
constexpr int kDark = 128, kMore = 64;

// Measures swscale's weights in one direction: lights samples, and reads the results in 16 bits.
// The other direction is not scaled, so each line is a separate measurement.
class Probe {
 public:
  Probe(const ScaledPart& part, bool columns)
      : columns_(columns),
        size_(columns ? part.part.height : part.part.width),
        to_size_(columns ? part.height : part.width),
        width_(columns ? kLines : size_),
        height_(columns ? size_ : kLines),
        to_width_(columns ? kLines : to_size_),
        to_height_(columns ? to_size_ : kLines),
        sws_(not_null(sws_alloc_context())) {
    const auto set = [&](const char* name, std::int64_t value) {
      av_opt_set_int(sws_.get(), name, value, 0);
    };
    // Chroma is halved only in this direction.
    const AVPixelFormat from = columns ? AV_PIX_FMT_YUV440P : AV_PIX_FMT_YUV422P;
    set("srcw", width_), set("srch", height_), set("src_format", from);
    set("dstw", to_width_), set("dsth", to_height_), set("dst_format", AV_PIX_FMT_YUV444P16LE);
    set("sws_flags", (part.averages ? SWS_AREA : SWS_BICUBIC) | kSwsExact);
    set("src_range", 1), set("dst_range", 1);
    if (columns) set("src_v_chr_pos", 128);
    if (!columns && !part.full_range) set("src_h_chr_pos", 0);
    const int* same = sws_matrix(1);
    sws_setColorspaceDetails(sws_.get(), same, 1, same, 1, 0, 1 << 16, 1 << 16);
    if (sws_init_context(sws_.get(), nullptr, nullptr) < 0)
      fail("cannot scale {}x{} pixels to {}x{}", part.part.width, part.part.height, part.width,
           part.height);
    dark_ = scale(-1);
  }

  PictureTaps taps(bool chroma);

 private:
  // Scales a picture with sample `first` + k of line k lit. If `first` is -1, no sample is lit.
  Frame scale(int first) const;
  int weight(const Frame& lit, int first, int i, int o, int plane) const {
    const int line = i - first;
    const auto at = [&](const Frame& frame) {
      const int x = columns_ ? line : o, y = columns_ ? o : line;
      const std::uint8_t* const row = frame.plane[plane] + std::ptrdiff_t{y} * frame.stride[plane];
      return row[2 * x] | row[2 * x + 1] << 8;
    };
    // A weight of 1 is 2^14 in a row and 2^12 in a column. Samples of 16 bits are 2^8 times samples
    // of 8 bits.
    const int difference = at(lit) - at(dark_);
    return columns_ ? difference / (kMore * 256 / 4096) : difference;
  }

  bool columns_;
  int size_, to_size_, width_, height_, to_width_, to_height_;
  SwsPtr sws_;
  Frame dark_;
};

Frame Probe::scale(int first) const {
  // yuv444 has memory enough for either format. Two bytes of `to` are one 16-bit result.
  Frame from = make_frame(PixelLayout::yuv444, width_, height_);
  Frame to = make_frame(PixelLayout::yuv444, 2 * to_width_, to_height_);
  for (int p = 0; p < 3; ++p) {
    std::fill_n(writable(from, p), std::ptrdiff_t{from.stride[p]} * height_, kDark);
    const int count = p == 0 ? size_ : (size_ + 1) / 2;
    for (int k = 0; first >= 0 && k < kLines && first + k < count; ++k)
      writable(from, p)[columns_ ? std::ptrdiff_t{first + k} * from.stride[p] + k
                                 : std::ptrdiff_t{k} * from.stride[p] + first + k] = kDark + kMore;
  }
  const std::uint8_t* planes[4] = {from.plane[0], from.plane[1], from.plane[2]};
  const int strides[4] = {from.stride[0], from.stride[1], from.stride[2]};
  std::uint8_t* to_planes[4] = {writable(to, 0), writable(to, 1), writable(to, 2)};
  const int to_strides[4] = {to.stride[0], to.stride[1], to.stride[2]};
  sws_scale(sws_.get(), planes, strides, 0, height_, to_planes, to_strides);
  return to;
}

PictureTaps Probe::taps(bool chroma) {
  const int count = chroma ? (size_ + 1) / 2 : size_, plane = chroma ? 1 : 0;
  struct Weight {
    int from, weight;
  };
  std::vector<std::vector<Weight>> found(static_cast<std::size_t>(to_size_));
  for (int first = 0; first < count; first += kLines) {
    const Frame lit = scale(first);
    for (int i = first; i < std::min(count, first + kLines); ++i)
      for (int o = 0; o < to_size_; ++o)
        if (const int w = weight(lit, first, i, o, plane); w != 0)
          found[static_cast<std::size_t>(o)].push_back({i, w});
  }
  PictureTaps taps;
  for (const auto& weights : found) {
    if (weights.empty()) fail("swscale makes pixels of nothing");
    taps.size = std::max(taps.size, weights.back().from - weights.front().from + 1);
  }
  taps.weights.resize(found.size() * static_cast<std::size_t>(taps.size));
  for (std::size_t o = 0; o < found.size(); ++o) {
    const int from = std::min(found[o].front().from, count - taps.size);
    taps.first.push_back(from);
    for (const Weight& w : found[o])
      taps.weights[static_cast<std::size_t>(w.from - from) * found.size() + o] = w.weight;
  }
  return taps;
}

std::int32_t rounded_16(std::int64_t value) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>((value + (1 << 15)) >> 16, INT16_MIN, INT16_MAX));
}

}  // namespace

PictureScale picture_scale(const ScaledPart& part) {
  PictureScale s;
  s.width = part.part.width, s.height = part.part.height;
  s.to_width = part.width, s.to_height = part.height;
  Probe rows(part, false), columns(part, true);
  s.luma_x = rows.taps(false), s.chroma_x = rows.taps(true);
  s.luma_y = columns.taps(false), s.chroma_y = columns.taps(true);
  // As in libswscale/yuv2rgb.c. The matrix has 16 bits after the point, and is for limited range.
  const int* const matrix = sws_matrix(part.matrix);
  const auto chroma = [&](int which, int sign) {
    const std::int64_t value = std::int64_t{sign} * matrix[which];
    return rounded_16((part.full_range ? value * 224 / 255 : value) * 8192);
  };
  s.luma_gain = rounded_16((part.full_range ? 65536 : 65536 * 255 / 219) * std::int64_t{8192});
  s.luma_offset = part.full_range ? 0 : 16 * 512;
  s.red_v = chroma(0, 1), s.blue_u = chroma(1, 1);
  s.green_u = chroma(2, -1), s.green_v = chroma(3, -1);
  return s;
}

}  // namespace vfm::media
