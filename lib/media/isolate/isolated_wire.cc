// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/isolated_wire.h"

#include <limits>

#include "base/json.h"

namespace vfm::media {
namespace {

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
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // FFmpeg's limit.
  if (value.num < -kMost || value.num > kMost || value.den <= 0 || value.den > kMost)
    fail("'{}' is no rational", name);
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
                    {"time_base", pair_of(info.time_base)},
                    {"frame_rate", pair_of(info.frame_rate)},
                    {"duration", info.duration},
                    {"start", info.start},
                    {"frames", info.frames},
                    {"image", info.image},
                    {"endless", info.endless},
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
  info.time_base = need_rational(json, "time_base");
  info.frame_rate = need_rational(json, "frame_rate");
  info.duration = need_number(json, "duration", kWhat);
  info.start = need_number(json, "start", kWhat);
  info.frames = need_integer(json, "frames", kWhat);
  info.image = need_bool(json, "image");
  info.endless = need_bool(json, "endless");
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
