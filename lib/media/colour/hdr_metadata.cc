// SPDX-License-Identifier: Apache-2.0
#include "media/colour/hdr_metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

extern "C" {
#include <libavutil/mastering_display_metadata.h>
}

namespace vfm::media {
namespace {

constexpr int kPlaces = 50000, kLuminances = 10000;  // Units per 1, and per cd/m2.

template <class Number>
Number in_units(AVRational value, int units) {
  if (value.den <= 0) return 0;
  constexpr double kMost = std::numeric_limits<Number>::max();
  return static_cast<Number>(std::clamp(std::round(av_q2d(value) * units), 0.0, kMost));
}

void add_screen(const AVMasteringDisplayMetadata& from, HdrMetadata& to) {
  if (from.has_primaries) {
    for (std::size_t i = 0; i < 8; ++i)
      to.screen[i] = in_units<std::uint16_t>(
          i < 6 ? from.display_primaries[i / 2][i % 2] : from.white_point[i - 6], kPlaces);
  }
  if (from.has_luminance) {
    to.max_luminance = in_units<std::uint32_t>(from.max_luminance, kLuminances);
    to.min_luminance = in_units<std::uint32_t>(from.min_luminance, kLuminances);
  }
}

void add_light(const AVContentLightMetadata& from, HdrMetadata& to) {
  to.max_light = static_cast<std::uint16_t>(std::min(from.MaxCLL, 65535U));
  to.max_frame_light = static_cast<std::uint16_t>(std::min(from.MaxFALL, 65535U));
}

template <class Metadata>
const Metadata* as(const std::uint8_t* data, std::size_t size) {
  return data && size >= sizeof(Metadata) ? reinterpret_cast<const Metadata*>(data) : nullptr;
}

template <class Metadata>
const Metadata* of_frame(const AVFrame& picture, AVFrameSideDataType type) {
  const AVFrameSideData* side = av_frame_get_side_data(&picture, type);
  return side ? as<Metadata>(side->data, side->size) : nullptr;
}

template <class Metadata>
const Metadata* of_stream(const AVStream& stream, AVPacketSideDataType type) {
  std::size_t size = 0;
  const std::uint8_t* data = av_stream_get_side_data(&stream, type, &size);
  return as<Metadata>(data, size);
}

/// The stream takes ownership of `data`.
void give(AVStream& stream, AVPacketSideDataType type, void* data, std::size_t size) {
  if (av_stream_add_side_data(&stream, type, static_cast<std::uint8_t*>(not_null(data)), size) >= 0)
    return;
  av_free(data);
  throw std::bad_alloc();
}

}  // namespace

HdrMetadata hdr_of(const AVFrame& picture, const HdrMetadata& container) {
  HdrMetadata hdr = container;
  if (const auto* screen =
          of_frame<AVMasteringDisplayMetadata>(picture, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA))
    add_screen(*screen, hdr);
  if (const auto* light =
          of_frame<AVContentLightMetadata>(picture, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL))
    add_light(*light, hdr);
  return hdr;
}

HdrMetadata hdr_of(const AVStream& stream) {
  HdrMetadata hdr;
  if (const auto* screen =
          of_stream<AVMasteringDisplayMetadata>(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA))
    add_screen(*screen, hdr);
  if (const auto* light =
          of_stream<AVContentLightMetadata>(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL))
    add_light(*light, hdr);
  return hdr;
}

void set_hdr(AVStream& stream, const HdrMetadata& hdr) {
  if (hdr.has_screen()) {
    auto* screen = not_null(av_mastering_display_metadata_alloc());
    for (std::size_t i = 0; i < 8; ++i)
      (i < 6 ? screen->display_primaries[i / 2][i % 2] : screen->white_point[i - 6]) =
          av_make_q(hdr.screen[i], kPlaces);
    screen->max_luminance = av_make_q(static_cast<int>(hdr.max_luminance), kLuminances);
    screen->min_luminance = av_make_q(static_cast<int>(hdr.min_luminance), kLuminances);
    screen->has_primaries = screen->has_luminance = 1;
    give(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, screen, sizeof *screen);
  }
  if (hdr.has_light()) {
    std::size_t size = 0;
    auto* light = not_null(av_content_light_metadata_alloc(&size));
    light->MaxCLL = hdr.max_light;
    light->MaxFALL = hdr.max_frame_light;
    give(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, light, size);
  }
}

std::string screen_text(const HdrMetadata& hdr) {
  const auto& s = hdr.screen;
  return fmt::format("G({},{})B({},{})R({},{})WP({},{})L({},{})", s[2], s[3], s[4], s[5], s[0],
                     s[1], s[6], s[7], hdr.max_luminance, hdr.min_luminance);
}

std::string screen_text_svt(const HdrMetadata& hdr) {
  const auto place = [&](std::size_t i) {
    return fmt::format("({:.5f},{:.5f})", hdr.screen[i] / double{kPlaces},
                       hdr.screen[i + 1] / double{kPlaces});
  };
  return fmt::format("G{}B{}R{}WP{}L({:.4f},{:.4f})", place(2), place(4), place(0), place(6),
                     hdr.max_luminance / double{kLuminances},
                     hdr.min_luminance / double{kLuminances});
}

std::string light_text(const HdrMetadata& hdr) {
  return fmt::format("{},{}", hdr.max_light, hdr.max_frame_light);
}

}  // namespace vfm::media
