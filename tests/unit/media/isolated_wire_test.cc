// What a child of media/isolate/isolated.h may say: whatever it is, its parent has an Error or what
// can be.
// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/isolated_wire.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "media/isolate/isolated_pictures.h"
#include "media_files.h"

using namespace vfm;
using namespace vfm::media;
using media_files::path;

namespace {

PictureFacts facts(std::int32_t layout, std::int32_t width, std::int32_t height) {
  PictureFacts facts;
  facts.layout = layout;
  facts.width = width;
  facts.height = height;
  return facts;
}

template <class T>
void append(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

TEST_CASE("a child's picture lies in what is shared, or is none") {
  constexpr std::uint64_t kMostPixels = 64 * 48;
  const std::size_t room = picture_bytes(kMostPixels);
  std::vector<std::uint8_t> memory(room);
  for (int layout = 0; layout <= static_cast<int>(PixelLayout::yuv420p10); ++layout)
    for (const auto& [width, height] : {std::pair(64, 48), {1, 3072}, {3072, 1}, {63, 47}}) {
      const Placed placed = place_picture(facts(layout, width, height), memory.data(), room);
      const int last = plane_count(placed.frame.layout) - 1;
      const std::uint8_t* end =
          placed.frame.plane[last] +
          std::ptrdiff_t{placed.frame.stride[last]} * plane_rows(placed.frame, last);
      CHECK(end <= memory.data() + placed.bytes);
      CHECK(placed.bytes <= room);
    }
  for (const auto& [layout, width, height] : {std::tuple(-1, 64, 48),
                                              {6, 64, 48},
                                              {0, 0, 48},
                                              {0, 64, -1},
                                              {4, 65536, 65536},
                                              {0, 65537, 1},
                                              {0, INT32_MAX, INT32_MAX},
                                              {0, 4096, 4096}})
    CHECK_THROWS_AS(place_picture(facts(layout, width, height), memory.data(), room), Error);
}

TEST_CASE("planes that a child names lie in what is shared, or it names none") {
  constexpr std::size_t kRoom = 1 << 16;
  std::vector<std::uint8_t> memory(kRoom);
  Given given;
  given.facts = facts(0, 64, 48);
  given.plane = {0, 4096, 8192};
  given.stride = {64, 64, 32};
  const Frame frame = picture_at(given, memory.data(), kRoom);
  CHECK(frame.plane[1] == memory.data() + 4096);
  CHECK(frame.stride[2] == 32);
  // As near to the end as 64 bytes behind the plane allow, and one nearer.
  const std::uint64_t last = kRoom - 64 - (32 * 23 + 32);
  given.plane[2] = last;
  CHECK_NOTHROW(picture_at(given, memory.data(), kRoom));
  given.plane[2] = last + 1;
  CHECK_THROWS_AS(picture_at(given, memory.data(), kRoom), Error);
  given.plane[2] = last;
  given.facts.chroma_location = 7;  // there is no such place
  CHECK_THROWS_AS(picture_at(given, memory.data(), kRoom), Error);
  std::mt19937_64 draw(1);
  const auto any = [&]() -> std::uint64_t {
    const std::uint64_t few = draw() % (kRoom + 200);
    return draw() % 4 > 0 ? few : draw() % 2 > 0 ? draw() : 0 - few;
  };
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    given.facts =
        facts(static_cast<std::int32_t>(draw() % 6), static_cast<std::int32_t>(draw() % 99),
              static_cast<std::int32_t>(draw() % 99));
    for (std::size_t p = 0; p < 3; ++p) {
      given.plane[p] = any();
      given.stride[p] = static_cast<std::int32_t>(draw() % 3 > 0 ? draw() % 400 : any());
    }
    try {
      const Frame found = picture_at(given, memory.data(), kRoom);
      ++good;
      for (int p = 0; p < plane_count(found.layout); ++p) {
        REQUIRE(found.plane[p] >= memory.data());
        REQUIRE(found.stride[p] >= plane_row_bytes(found, p));
        REQUIRE(found.plane[p] + std::ptrdiff_t{found.stride[p]} * (plane_rows(found, p) - 1) +
                    plane_row_bytes(found, p) + 64 <=
                memory.data() + kRoom);
      }
    } catch (const Error&) {
    }
  }
  CHECK(good > 100);
  CHECK(good < 19000);
}

TEST_CASE("a child's error is of a kind that there is") {
  CHECK(share::checked_cause(Cause::open, Cause::crash) == Cause::open);
  CHECK(share::checked_cause(kLastCause, Cause::crash) == kLastCause);
  for (const int none : {-1, INT32_MIN, static_cast<int>(kLastCause) + 1, INT32_MAX})
    CHECK(share::checked_cause(static_cast<Cause>(none), Cause::crash) == Cause::crash);
}

TEST_CASE("what a child says of a stream comes back, or is none") {
  StreamInfo info;
  info.stream = 1;
  info.codec = "h264";
  info.time_base = {1, 12800};
  info.frame_rate = {25, 1};
  info.rotation = 270;
  info.start = -0.021;
  const std::string text = pack_info(info);
  CHECK(pack_info(parse_info(text)) == text);
  const Json whole = parse_json(text, "text");
  for (const auto& [name, value] : whole.items()) {
    CAPTURE(name);
    Json other = whole;
    other[name] = Json::object();
    if (value.is_boolean()) continue;  // one that is none is false
    CHECK_THROWS_AS(parse_info(dump_json(other)), Error);
  }
  for (const Json& change :
       {Json{{"rotation", 45}}, Json{{"time_base", {1, 0}}}, Json{{"width", std::int64_t{1} << 40}},
        Json{{"frame_rate", {1}}}, Json{{"frame_rate", {std::int64_t{1} << 62, 1}}},
        Json{{"time_base", {1, std::int64_t{1} << 40}}}}) {
    Json other = whole;
    other.update(change);
    CHECK_THROWS_AS(parse_info(dump_json(other)), Error);
  }
  for (const char* none : {"", "[]", "{", "1"})
    CHECK_THROWS_AS(parse_info(none), Error);
}

TEST_CASE("a child's sound comes back, or is none, whatever is changed in it") {
  if (!media_files::available()) return;
  const AudioTrack track =
      AudioReader(path("plain.mp4")).read({0, 500, {1, 1000}}, AudioMode::copy);
  REQUIRE_FALSE(track.empty());
  const std::string text = pack_track(track);
  CHECK(pack_track(parse_track(text)) == text);
  // The last number says how many pieces of side data a packet has: more than there are kinds.
  REQUIRE(text.ends_with(std::string(sizeof(int), '\0')));
  std::string many = text.substr(0, text.size() - sizeof(int));
  append(many, 1000);
  for (int type = 0; type < 1000; ++type) {
    append(many, type);
    append(many, std::uint64_t{0});
  }
  CHECK_THROWS_AS(parse_track(many), Error);
  const auto is_error_or_track = [](const std::string& changed) {
    try {
      parse_track(changed);
    } catch (const Error&) {
    }
  };
  for (std::size_t size = 0; size < text.size(); size += 1 + size / 50)
    CHECK_NOTHROW(is_error_or_track(text.substr(0, size)));
  std::mt19937 draw(1);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = text;
    changed[draw() % std::min<std::size_t>(text.size(), i % 2 ? 200 : text.size())] =
        static_cast<char>(draw());
    CHECK_NOTHROW(is_error_or_track(changed));
  }
}
