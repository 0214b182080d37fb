// SPDX-License-Identifier: Apache-2.0
#include "media/decode/decoder.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/input_limits.h"
#include "base/run_end.h"
#include "frame_hash.h"
#include "media_files.h"

namespace {

using namespace vfm::media;
using media_files::path;
using vfm::Rational;

std::vector<Frame> decode(const std::string& file, const DecodeOptions& options = {}) {
  Decoder decoder(file, options);
  std::vector<Frame> frames;
  for (Frame frame; decoder.next(frame);)
    frames.push_back(frame);
  CHECK(decoder.corrupt() == 0);
  return frames;
}

// The visible bytes of all frames, as ffmpeg's rawvideo has them.
std::string raw(const std::vector<Frame>& frames) {
  std::string bytes;
  for (const Frame& f : frames)
    for (int p = 0; p < plane_count(f.layout); ++p)
      for (int y = 0; y < plane_rows(f, p); ++y)
        bytes.append(reinterpret_cast<const char*>(f.plane[p]) + std::ptrdiff_t{y} * f.stride[p],
                     static_cast<std::size_t>(plane_row_bytes(f, p)));
  return bytes;
}

std::vector<std::int64_t> times(const std::vector<Frame>& frames) {
  std::vector<std::int64_t> t;
  for (const Frame& f : frames)
    t.push_back(f.pts);
  return t;
}

std::string error_of(const std::string& file, int stream = -1) {
  try {
    Decoder decoder(file, {.stream = stream});
    Frame frame;
    while (decoder.next(frame)) {
    }
  } catch (const vfm::Error& error) {
    return error.what();
  }
  return "no error";
}

using Catch::Contains;

}  // namespace

TEST_CASE("decoder gives the frames and times that ffmpeg and ffprobe see") {
  NEED_FFMPEG();
  const auto name = GENERATE("plain.mp4", "pcm.mov", "open_gop.mkv", "program.ts", "vp9.webm",
                             "vfr.mp4", "one.mp4", "long_gop.mp4", "rotated.mp4", "faststart.mp4",
                             "edited.mp4", "odd.mkv", "odd422.mkv", "gray.mkv", "jpeg.avi");
  CAPTURE(name);
  const std::string file = path(name);
  const auto frames = decode(file);
  CHECK(times(frames) == media_files::probe_times(file));
  CHECK((raw(frames) == media_files::raw_frames(file)));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CHECK(frames[i].index == static_cast<std::int64_t>(i));
    if (i + 1 < frames.size()) CHECK(frames[i].duration == frames[i + 1].pts - frames[i].pts);
    CHECK(frames[i].duration > 0);
  }
  // Threads change nothing.
  const auto again = decode(file, {.threads = 3});
  CHECK((raw(again) == raw(frames)));
  CHECK(times(again) == times(frames));
}

TEST_CASE("decoder makes up times that the container lacks") {
  NEED_FFMPEG();
  const auto frames = decode(path("missing_pts.avi"));
  REQUIRE(frames.size() == 50);
  for (std::size_t i = 1; i < frames.size(); ++i)
    CHECK(frames[i].pts == frames[i - 1].pts + 1);
}

TEST_CASE("deep, paletted and alpha pictures become the nearest 8-bit layout") {
  NEED_FFMPEG();
  struct Case {
    const char* name;
    PixelLayout layout;
    const char* format;
  };
  const auto [name, layout, format] = GENERATE(table<const char*, PixelLayout, const char*>(
      {{"ten_bit.mp4", PixelLayout::yuv420, "yuv420p"},
       {"deep444.mkv", PixelLayout::yuv444, "yuv444p"},
       {"rgb.mkv", PixelLayout::rgb24, "rgb24"},
       {"paletted.avi", PixelLayout::rgb24, "rgb24"},
       {"alpha.mkv", PixelLayout::yuv420, "yuv420p"}}));
  CAPTURE(name);
  const auto frames = decode(path(name));
  REQUIRE(!frames.empty());
  CHECK(frames[0].layout == layout);
  CHECK((raw(frames) == media_files::raw_frames(path(name), "v:0", format)));
}

TEST_CASE("decoder says what the stream is") {
  NEED_FFMPEG();
  const StreamInfo plain = Decoder(path("plain.mp4")).info();
  CHECK(plain.codec == "h264");
  CHECK(plain.width == 96);
  CHECK(plain.height == 64);
  CHECK(plain.time_base == Rational{1, 12800});
  CHECK(plain.frame_rate == Rational{25, 1});
  CHECK(plain.duration == Approx(2));
  CHECK(plain.frames == 50);
  CHECK(plain.rotation == 0);
  CHECK(plain.has_audio);
  CHECK(plain.audio_codec == "aac");
  CHECK_FALSE(plain.image);

  const StreamInfo rotated = Decoder(path("rotated.mp4")).info();
  CHECK(rotated.rotation == 270);  // what -metadata rotate=90 of FFmpeg 5.1 means
  CHECK_FALSE(rotated.mirror);
  CHECK(rotated.display_width == 64);
  CHECK(rotated.display_height == 96);
  CHECK(Decoder(path("ten_bit.mp4")).info().pixel_format == "yuv420p10le");
  CHECK(Decoder(path("odd.mkv")).info().display_width == 97);
  Frame frame;
  Decoder jpeg(path("jpeg.avi"));
  REQUIRE(jpeg.next(frame));
  CHECK(frame.full_range);
}

TEST_CASE("decoder chooses the stream that a player would") {
  NEED_FFMPEG();
  const auto cover = decode(path("cover.mp4"));
  CHECK(cover.size() == 50);
  CHECK((raw(cover) == raw(decode(path("plain.mp4")))));
  Decoder two(path("two_streams.mkv"));
  CHECK(two.info().stream == 1);
  CHECK(two.info().width == 96);
  Decoder first(path("two_streams.mkv"), {.stream = 0});
  CHECK(first.info().width == 64);
  CHECK((raw(decode(path("two_streams.mkv"), {.stream = 0})) ==
         media_files::raw_frames(path("two_streams.mkv"), "v:0")));
  CHECK_THAT(
      error_of(path("two_streams.mkv"), 7),
      Contains("has no video stream 7 (its streams: 0 video h264 64x48, 1 video h264 96x64)"));
  CHECK_THAT(error_of(path("plain.mp4"), 1), Contains("1 audio aac"));
}

TEST_CASE("files without video are named with the reason") {
  NEED_FFMPEG();
  CHECK_THAT(error_of(path("absent.mp4")), Contains("absent.mp4': No such file or directory"));
  CHECK_THAT(error_of(path("empty.mp4")), Contains("empty.mp4' is empty"));
  CHECK_THAT(error_of(path("")), Contains("is a directory"));
  CHECK_THAT(error_of(path("audio.m4a")), Contains("has no video stream (only audio)"));
  CHECK_THAT(error_of(path("cover_only.m4a")),
             Contains("has no video stream (only audio and cover art)"));
  CHECK_THAT(error_of(path("words.srt")), Contains("has no video stream (only subtitles or data)"));
  CHECK_THAT(error_of(path("notes.txt")), Contains("it is text, not a video"));
  CHECK(error_of(path("nothing.mp4")) != "no error");
  const std::string whole = media_files::read(path("plain.mp4"));
  media_files::write(path("no_moov.mp4"), whole.substr(0, whole.size() / 2));
  CHECK_THAT(error_of(path("no_moov.mp4")), Contains("moov atom not found"));
  media_files::write(path("garbage.mp4"), std::string(5000, '\x5a'));
  CHECK_THAT(error_of(path("garbage.mp4")), Contains("cannot open"));
  CHECK_THAT(error_of("no-such-protocol://x"), Contains("cannot open 'no-such-protocol://x'"));
}

TEST_CASE("a stop while a file is opened is no fault of the file") {
  NEED_FFMPEG();
  // A full disk stops a program as a signal does, and can be taken back.
  CHECK_THROWS_AS(vfm::throw_output_error(ENOSPC, "cannot write 'x'"), vfm::Stopped);
  CHECK_THROWS_AS(Decoder(path("plain.mp4"), DecodeOptions{}), vfm::Stopped);
  vfm::forget_run_end();
  CHECK_FALSE(decode(path("plain.mp4")).empty());
}

TEST_CASE("what names other files is refused, on disk and in memory") {
  const auto [text, words] = GENERATE(table<const char*, const char*>(
      {{"#EXTM3U\n#EXTINF:5,\nplain.mp4\n#EXT-X-ENDLIST\n", "an HLS playlist"},
       {"<?xml version=\"1.0\"?>\n<MPD profiles=\"x\"></MPD>", "a DASH manifest"},
       {"ffconcat version 1.0\nfile 'plain.mp4'\n", "a concat script"},
       {"v=0\r\nc=IN IP4 127.0.0.1\r\nm=video 9 RTP/AVP 96\r\n", "an SDP session"}}));
  for (const char* name : {"script.mp4", "script.mkv", "script.jpg", "script.m3u8"}) {
    media_files::write(path(name), text);
    CHECK_THAT(error_of(path(name)), Contains(words));
    CHECK_THROWS_WITH(Decoder(std::string_view(text), name), Contains(words));
  }
}

TEST_CASE("what has more pixels than may be is refused before it is decoded") {
  NEED_FFMPEG();
  vfm::set_input_limits({.max_pixels = 96 * 64});
  CHECK(error_of(path("plain.mp4")) == "no error");
  CHECK(error_of(path("still.png")) == "no error");
  vfm::set_input_limits({.max_pixels = 96 * 64 - 1});
  CHECK_THAT(error_of(path("plain.mp4")), Contains("has pictures of 96x64, more pixels than"));
  CHECK_THAT(error_of(path("still.png")), Contains("has pictures of 96x64, more pixels than"));
  vfm::set_input_limits({});
}

TEST_CASE("still pictures are videos of one frame") {
  NEED_FFMPEG();
  const auto name = GENERATE("still.png", "still.jpg", "still.bmp", "still.tiff", "still.webp",
                             "still.gif", "shot%02d.png");
  CAPTURE(name);
  Decoder decoder(path(name));
  CHECK(decoder.info().image);
  CHECK(decoder.info().width == 96);
  CHECK(decoder.info().frames == 1);
  Frame frame;
  REQUIRE(decoder.next(frame));
  CHECK(frame.width == 96);
  CHECK(frame.height == 64);
  CHECK(frame.duration > 0);
  Frame none;
  CHECK_FALSE(decoder.next(none));
  decoder.seek(0);
  CHECK(decoder.next(none));
  CHECK(frame_hash(none) == frame_hash(frame));
}

TEST_CASE("a camera's orientation is honoured") {
  NEED_FFMPEG();
  struct Case {
    char orientation;  // the Exif tag
    int rotation;
    bool mirror;
  };
  const Case c =
      GENERATE(Case{1, 0, false}, Case{2, 0, true}, Case{3, 180, false}, Case{4, 180, true},
               Case{5, 270, true}, Case{6, 90, false}, Case{7, 90, true}, Case{8, 270, false});
  CAPTURE(static_cast<int>(c.orientation));
  std::string exif(
      "\xff\xe1\0\x22"
      "Exif\0\0"
      "II*\0\x08\0\0\0"
      "\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0"
      "\0\0\0\0",
      36);
  exif[28] = c.orientation;
  std::string jpeg = media_files::read(path("still.jpg"));
  jpeg.insert(2, exif);
  const StreamInfo info = Decoder(jpeg, "photo").info();
  CHECK(info.image);
  CHECK(info.rotation == c.rotation);
  CHECK(info.mirror == c.mirror);
  CHECK(info.display_width == (c.rotation % 180 == 0 ? 96 : 64));
}

TEST_CASE("an animated GIF is a video") {
  NEED_FFMPEG();
  CHECK_FALSE(Decoder(path("animated.gif")).info().image);
  CHECK(decode(path("animated.gif")).size() == 2);
}

TEST_CASE("a file in memory decodes as from disk") {
  NEED_FFMPEG();
  for (const char* name : {"plain.mp4", "vp9.webm", "still.jpg"}) {
    const std::string bytes = media_files::read(path(name));
    Decoder decoder(bytes, "member");
    std::vector<Frame> frames;
    for (Frame frame; decoder.next(frame);)
      frames.push_back(frame);
    CHECK((raw(frames) == raw(decode(path(name)))));
  }
  CHECK_THROWS_WITH(Decoder(std::string_view("", 0), "member"), "'member' is empty");
}

TEST_CASE("a file cut short gives what is there and says that some is missing") {
  NEED_FFMPEG();
  const std::string whole = media_files::read(path("faststart.mp4"));
  media_files::write(path("short.mp4"), whole.substr(0, whole.size() * 2 / 3));
  Decoder decoder(path("short.mp4"));
  std::vector<Frame> frames;
  for (Frame frame; decoder.next(frame);)
    frames.push_back(frame);
  CHECK(frames.size() > 20);
  CHECK(frames.size() < 50);
  CHECK(decoder.corrupt() > 0);
  for (const Frame& frame : frames)
    CHECK(frame.duration < 2000);
}

TEST_CASE("damage in the middle is passed over and counted, the same with any threads") {
  NEED_FFMPEG();
  const auto name = GENERATE("faststart.mp4", "program.ts", "vp9.webm", "open_gop.mkv",
                             "missing_pts.avi", "ten_bit.mp4", "jpeg.avi");
  CAPTURE(name);
  for (std::size_t trial = 0; trial < 4; ++trial) {
    CAPTURE(trial);
    std::string bytes = media_files::read(path(name));
    const std::size_t at = bytes.size() * (3 + trial) / 8, length = trial == 0 ? 900 : 3 + trial;
    for (std::size_t i = 0; i < length; ++i)
      bytes[at + i] = static_cast<char>(i * 37 + i / 7 + trial);
    Decoder one(bytes, "damaged"), three(bytes, "damaged", {.threads = 3});
    std::vector<Frame> a, b;
    for (Frame frame; one.next(frame);)
      a.push_back(frame);
    for (Frame frame; three.next(frame);)
      b.push_back(frame);
    CHECK(a.size() >= 3);  // a small Matroska is one cluster: the rest of it is lost
    if (trial == 0) CHECK(one.corrupt() > 0);
    CHECK(one.corrupt() == three.corrupt());
    CHECK(times(a) == times(b));
    CHECK((raw(a) == raw(b)));
    for (std::size_t i = 1; i < a.size(); ++i)
      CHECK(a[i].pts > a[i - 1].pts);
  }
}

TEST_CASE("seek gives exactly the frames of a decode from the start") {
  NEED_FFMPEG();
  const auto name = GENERATE("plain.mp4", "open_gop.mkv", "program.ts", "vp9.webm", "vfr.mp4",
                             "edited.mp4", "missing_pts.avi", "long_gop.mp4", "ten_bit.mp4");
  CAPTURE(name);
  const auto frames = decode(path(name));
  Decoder decoder(path(name));
  // Out of order, so that each seek starts somewhere else; between frames as well as on them.
  for (std::size_t k = 0; k < frames.size(); k += 3) {
    const std::size_t i = k * 17 % frames.size();
    const std::int64_t target = frames[i].pts - (i % 2 == 1 && i > 0 ? 1 : 0);
    decoder.seek(target);
    std::size_t want = i;
    while (want > 0 && frames[want - 1].pts >= target)
      --want;
    Frame frame;
    REQUIRE(decoder.next(frame));
    CHECK(frame.pts == frames[want].pts);
    CHECK(frame.duration == frames[want].duration);
    CHECK(frame_hash(frame) == frame_hash(frames[want]));
    if (want + 1 < frames.size()) {
      REQUIRE(decoder.next(frame));
      CHECK(frame_hash(frame) == frame_hash(frames[want + 1]));
    }
  }
  Frame frame;
  decoder.seek(frames.back().pts + 1);
  CHECK_FALSE(decoder.next(frame));
  decoder.seek(-1000000);
  REQUIRE(decoder.next(frame));
  CHECK(frame.pts == frames[0].pts);
}

TEST_CASE("key frames alone") {
  NEED_FFMPEG();
  const auto frames = decode(path("plain.mp4"), {.keyframes_only = true});
  CHECK(frames.size() >= 5);
  CHECK(frames.size() < 15);
  for (const Frame& frame : frames)
    CHECK(frame.key);
}
