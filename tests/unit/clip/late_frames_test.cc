// Frames whose pixels were freed are had again as they were.
// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/late_frames.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "curate/shots/shot_detector.h"
#include "media/frame_hash.h"
#include "media/media_files.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

std::vector<media::Frame> decode(const std::string& path) {
  media::Decoder decoder(path);
  std::vector<media::Frame> frames;
  for (media::Frame frame; decoder.next(frame);)
    frames.push_back(frame);
  return frames;
}

media::Frame freed(media::Frame frame) {
  free_pixels(frame);
  REQUIRE(is_freed(frame));
  return frame;
}

void check_same(const media::Frame& got, const media::Frame& wanted) {
  CHECK_FALSE(is_freed(got));
  CHECK(got.index == wanted.index);
  CHECK(got.pts == wanted.pts);
  CHECK(got.duration == wanted.duration);
  CHECK(frame_hash(got) == frame_hash(wanted));
}

}  // namespace

TEST_CASE("a clip's frames are decoded again from wherever they begin") {
  NEED_FFMPEG();
  const auto name = GENERATE("plain.mp4", "open_gop.mkv", "program.ts", "vp9.webm", "vfr.mp4",
                             "edited.mp4", "missing_pts.avi", "long_gop.mp4", "ten_bit.mp4");
  CAPTURE(name);
  const std::string path = media_files::path(name);
  const std::vector<media::Frame> frames = decode(path);
  for (const std::size_t begin : {std::size_t{0}, frames.size() / 3, frames.size() - 2}) {
    ClipFrames again(path, {}, std::nullopt);
    for (std::size_t i = begin; i < frames.size(); i += 1 + i % 3)
      check_same(again.fetch(freed(frames[i])), frames[i]);
  }
}

TEST_CASE("a clip's frames lose their bars again") {
  NEED_FFMPEG();
  const std::string path = media_files::path("plain.mp4");
  const media::Frame frame = decode(path).at(3);
  const CroppedPicture picture{
      {.x = 2, .y = 4, .width = frame.width - 4, .height = frame.height - 8},
      frame.width,
      frame.height};
  const media::Frame wanted = picture.of(frame);
  ClipFrames again(path, {}, picture);
  check_same(again.fetch(freed(wanted)), wanted);
}

TEST_CASE("frames that are not there any more are an error") {
  NEED_FFMPEG();
  const std::string path = media_files::path("plain.mp4");
  media::Frame frame = freed(decode(path).at(3));
  const char* const message = "gives different frames when it is read a second time";
  SECTION("another time") {
    ++frame.pts;
  }
  SECTION("another size") {
    frame.width += 2;
  }
  SECTION("another layout") {
    frame.layout = media::PixelLayout::rgb24;
  }
  CHECK_THROWS_WITH(ClipFrames(path, {}, std::nullopt).fetch(frame), Catch::Contains(message));
}

TEST_CASE("a video's frames are decoded again where many are left out between two") {
  NEED_FFMPEG();
  const std::string path = media_files::path("late_frames.mp4");
  media_files::run(
      "ffmpeg -nostdin -v error -y -f lavfi -i testsrc2=size=32x32:rate=25:duration=24 "
      "-c:v libx264 -preset ultrafast -g 50 -bf 2 '" +
      path + "'");
  const std::vector<media::Frame> frames = decode(path);
  LateFrames late(path, {}, 0);
  for (const std::size_t i : {2, 3, 290, 291, 599})
    check_same(late.fetch(freed(frames.at(i))), frames[i]);
}

TEST_CASE("a video that has changed meanwhile does not give its frames again") {
  NEED_FFMPEG();
  const std::string path = media_files::path("plain.mp4");
  const std::vector<media::Frame> frames = decode(path);
  media::Frame frame = freed(frames.back());
  LateFrames late(path, {}, 0);
  check_same(late.fetch(frame), frames.back());
  ++frame.index;
  CHECK_THROWS_WITH(late.fetch(frame), "'" + path + "' ends earlier when it is read a second time");
  frame = freed(frames[3]);
  ++frame.pts;
  CHECK_THROWS_WITH(LateFrames(path, {}, 0).fetch(frame),
                    "'" + path + "' gives different frames when it is read a second time");
  // Of the middle second alone, as it was decoded.
  media::Decoder decoder(path);
  decoder.seek(6400);
  media::Frame middle;
  REQUIRE(decoder.next(middle));
  LateFrames part(path, {}, 1);
  check_same(part.fetch(freed(middle)), middle);
}

TEST_CASE("frames lose their pixels where a hundred of them would be more than half a gigabyte") {
  LateFrames late("none", {}, 0);
  // 104 frames are held; 512 MiB are so many bytes each.
  const std::int64_t most = (std::int64_t{512} << 20) / curate::kShotLag;
  for (const std::int64_t bytes : {most, most + 1}) {
    media::Frame frame = media::make_frame(media::PixelLayout::gray, 1, 1);
    frame.height = 1;
    frame.width = static_cast<int>(bytes);
    CHECK(frame_bytes(frame) == bytes);
    late.spare(frame);
    CHECK(is_freed(frame) == (bytes > most));
  }
  CHECK(frame_bytes(media::make_frame(media::PixelLayout::yuv420, 5, 3)) == 15 + 2 * 6);
  CHECK(frame_bytes(media::make_frame(media::PixelLayout::yuv420p10, 5, 3)) == 30 + 2 * 12);
}
