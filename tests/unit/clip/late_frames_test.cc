// Frames whose pixels were freed are had again as they were.
// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/late_frames.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
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
