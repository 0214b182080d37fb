// SPDX-License-Identifier: Apache-2.0
#include "media/isolated_wire.h"

#include <limits>

#include "base/json.h"

namespace vfm::media {
namespace {

constexpr std::size_t kAlign = 64;

int need_int(const Json& json, const char* name) {
  const std::int64_t value = need_integer(json, name, "a child's word");
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    fail("'{}' is no number that fits", name);
  return static_cast<int>(value);
}

Rational need_rational(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number_integer() || !(*found)[1].is_number_integer())
    fail("'{}' is no rational", name);
  const Rational value{(*found)[0].get<std::int64_t>(), (*found)[1].get<std::int64_t>()};
  if (value.den <= 0) fail("'{}' is no rational", name);
  return value;
}

bool need_bool(const Json& json, const char* name) {
  return get_bool(json, name).value_or(false);
}

Json pair_of(Rational value) {
  return Json::array({value.num, value.den});
}

}  // namespace

Request request_for(Ask ask, const Span& span, AudioMode mode) {
  Request request;
  request.ask = ask;
  request.begin = span.begin;
  request.end = span.end;
  request.base_num = span.base.num;
  request.base_den = span.base.den;
  request.mode = mode;
  return request;
}

// At most three bytes a pixel, and rows are rounded up: by less than themselves where they are
// rounded at all.
std::size_t shared_bytes(std::uint64_t max_pixels) {
  return kSharedHead + 6 * static_cast<std::size_t>(max_pixels) + (std::size_t{1} << 20);
}

Placed place_picture(const PictureFacts& facts, std::uint8_t* data, std::size_t room) {
  if (facts.layout < 0 || facts.layout > static_cast<int>(PixelLayout::yuv420p10) ||
      facts.width <= 0 || facts.height <= 0 || facts.width > 65536 || facts.height > 65536)
    fail("a picture of {}x{} pixels is not possible", facts.width, facts.height);
  Placed placed;
  Frame& frame = placed.frame;
  frame.layout = static_cast<PixelLayout>(facts.layout);
  frame.width = facts.width;
  frame.height = facts.height;
  frame.full_range = facts.full_range != 0;
  frame.color = facts.color;
  frame.hdr = facts.hdr;
  frame.chroma_location = facts.chroma_location;
  frame.pts = facts.pts;
  frame.duration = facts.duration;
  frame.index = facts.index;
  frame.key = facts.key != 0;
  frame.interlaced = facts.interlaced != 0;
  frame.top_first = facts.top_first != 0;
  for (int p = 0; p < plane_count(frame.layout); ++p) {
    const auto row = static_cast<std::size_t>(plane_row_bytes(frame, p));
    const std::size_t stride = row < kAlign ? row : (row + kAlign - 1) / kAlign * kAlign;
    frame.stride[p] = static_cast<int>(stride);
    if (data) frame.plane[p] = data + placed.bytes;
    // Vector code reads a little past the end of rows (frame.h).
    placed.bytes += stride * static_cast<std::size_t>(plane_rows(frame, p)) + kAlign;
    placed.bytes = (placed.bytes + kAlign - 1) / kAlign * kAlign;
  }
  if (placed.bytes > room)
    fail_as(Cause::limit, "a picture of {}x{} pixels is larger than --max-pixels allows",
            facts.width, facts.height);
  return placed;
}

PictureFacts facts_of(const Frame& frame) {
  PictureFacts facts;
  facts.layout = static_cast<std::int32_t>(frame.layout);
  facts.width = frame.width;
  facts.height = frame.height;
  facts.full_range = frame.full_range;
  facts.color = frame.color;
  facts.hdr = frame.hdr;
  facts.chroma_location = frame.chroma_location;
  facts.pts = frame.pts;
  facts.duration = frame.duration;
  facts.index = frame.index;
  facts.key = frame.key;
  facts.interlaced = frame.interlaced;
  facts.top_first = frame.top_first;
  return facts;
}

std::string pack_info(const StreamInfo& info) {
  return dump_json({{"stream", info.stream},
                    {"container", info.container},
                    {"codec", info.codec},
                    {"pixel_format", info.pixel_format},
                    {"width", info.width},
                    {"height", info.height},
                    {"sample_aspect", pair_of(info.sample_aspect)},
                    {"rotation", info.rotation},
                    {"mirror", info.mirror},
                    {"display_width", info.display_width},
                    {"display_height", info.display_height},
                    {"time_base", pair_of(info.time_base)},
                    {"frame_rate", pair_of(info.frame_rate)},
                    {"duration", info.duration},
                    {"frames", info.frames},
                    {"image", info.image},
                    {"interlaced", info.interlaced},
                    {"transfer", info.transfer},
                    {"primaries", info.primaries},
                    {"bit_depth", info.bit_depth},
                    {"has_audio", info.has_audio},
                    {"audio_codec", info.audio_codec}});
}

StreamInfo parse_info(const std::string& text) {
  constexpr const char* kWhat = "a child's word";
  const Json json = parse_json(text, kWhat);
  StreamInfo info;
  info.stream = need_int(json, "stream");
  info.container = need_string(json, "container", kWhat);
  info.codec = need_string(json, "codec", kWhat);
  info.pixel_format = need_string(json, "pixel_format", kWhat);
  info.width = need_int(json, "width");
  info.height = need_int(json, "height");
  info.sample_aspect = need_rational(json, "sample_aspect");
  info.rotation = need_int(json, "rotation");
  info.mirror = need_bool(json, "mirror");
  info.display_width = need_int(json, "display_width");
  info.display_height = need_int(json, "display_height");
  info.time_base = need_rational(json, "time_base");
  info.frame_rate = need_rational(json, "frame_rate");
  info.duration = need_number(json, "duration", kWhat);
  info.frames = need_integer(json, "frames", kWhat);
  info.image = need_bool(json, "image");
  info.interlaced = need_bool(json, "interlaced");
  info.transfer = need_int(json, "transfer");
  info.primaries = need_int(json, "primaries");
  info.bit_depth = need_int(json, "bit_depth");
  info.has_audio = need_bool(json, "has_audio");
  info.audio_codec = need_string(json, "audio_codec", kWhat);
  if (info.rotation % 90 != 0 || info.rotation < 0 || info.rotation >= 360)
    fail("a picture is turned by {} degrees", info.rotation);
  return info;
}

}  // namespace vfm::media
