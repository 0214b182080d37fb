// SPDX-License-Identifier: Apache-2.0
#include "media/encode/encoder.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "frame_hash.h"
#include "media/decode/decoder.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder_settings.h"
#include "media_files.h"
#include "share/engine_sessions.h"
#include "test_picture.h"

namespace {

using namespace vfm;
using namespace vfm::media;

constexpr std::int64_t kMemory = std::int64_t{16} << 30;

EncodeOptions options_for(const std::string& encoder, int width, int height) {
  EncodeOptions o;
  o.encoder = encoder;
  o.width = width;
  o.height = height;
  o.time_base = {1, 1000};
  o.frame_rate = {25, 1};
  return o;
}

EncoderKind nvenc_kind() {
  EncoderKind kind{};
  kind.name = "h264_nvenc";
  return kind;
}

}  // namespace

TEST_CASE("encoder round trip keeps frames, times and pictures") {
  // Irregular times: every gap must come back.
  const std::vector<std::int64_t> times{100, 140, 181, 300, 301, 2000, 2040, 2077};
  for (const std::string& name : available_encoders()) {
    if (name == "h264_nvenc") continue;
    DYNAMIC_SECTION(name) {
      VideoEncoder encoder(options_for(name, 96, 64));
      for (std::size_t i = 0; i < times.size(); ++i) {
        Frame frame = to_frame(test_picture(96, 64, static_cast<int>(i)));
        frame.pts = times[i];
        frame.duration = 55;
        encoder.add(frame);
      }
      const std::string mp4 = encoder.finish();
      CHECK(mp4.find("moov") < mp4.find("mdat"));
      Decoder decoder(mp4, "clip");
      CHECK(decoder.info().width == 96);
      Scaler scaler;
      Frame frame;
      std::size_t n = 0;
      while (decoder.next(frame)) {
        REQUIRE(n < times.size());
        const double unit = decoder.info().time_base.value() * 1000;
        CHECK(static_cast<double>(frame.pts) * unit == Approx(static_cast<double>(times[n] - 100)));
        const auto gap = n + 1 < times.size() ? times[n + 1] - times[n] : 55;
        CHECK(static_cast<double>(frame.duration) * unit == Approx(static_cast<double>(gap)));
        RgbImage back;
        scaler.to_rgb(frame, {}, back);
        CHECK(psnr(back, test_picture(96, 64, static_cast<int>(n))) > 28);
        ++n;
      }
      CHECK(n == times.size());
      CHECK(decoder.corrupt() == 0);
    }
  }
}

namespace {

struct Clip {
  StreamInfo info;
  std::vector<Frame> frames;
};

Clip decode_clip(const std::string& mp4) {
  Decoder decoder(mp4, "clip");
  Clip clip{decoder.info(), {}};
  for (Frame frame; decoder.next(frame);)
    clip.frames.push_back(frame);
  CHECK(decoder.corrupt() == 0);
  return clip;
}

RgbImage rgb(const Frame& frame) {
  RgbImage image;
  Scaler().to_rgb(frame, {}, image);
  return image;
}

std::string encode(const EncodeOptions& options, int frames = 5) {
  VideoEncoder encoder(options);
  for (int i = 0; i < frames; ++i)
    encoder.add(test_picture(options.width, options.height, i), 40 * i);
  return encoder.finish();
}

}  // namespace

TEST_CASE("the same frames give the same bytes") {
  for (const std::string& name : available_encoders()) {
    if (name == "h264_nvenc") continue;
    CAPTURE(name);
    CHECK(encode(options_for(name, 96, 64)) == encode(options_for(name, 96, 64)));
  }
}

TEST_CASE("what the encoder wrote is what ffprobe reads") {
  NEED_FFMPEG();
  EncodeOptions options = options_for("libx264", 96, 64);
  options.sample_aspect = {4, 3};
  options.rotation = 90;
  options.gop = 4;
  const std::string mp4 = encode(options, 20);
  const std::string file = media_files::path("encoded.mp4");
  media_files::write(file, mp4);
  const auto times = media_files::probe_times(file);
  REQUIRE(times.size() == 20);
  for (std::size_t i = 0; i < times.size(); ++i)
    CHECK(times[i] == static_cast<int>(i) * 40 * 16);
  const std::string facts = media_files::run(
      "ffprobe -v error -show_entries "
      "stream=codec_name,has_b_frames,sample_aspect_ratio,color_space,"
      "color_range,pix_fmt,start_pts,duration_ts:stream_side_data=rotation -of default=nk=0:nw=1 "
      "'" +
      file + "'");
  for (const char* want :
       {"codec_name=h264", "has_b_frames=0", "sample_aspect_ratio=4:3", "color_space=smpte170m",
        "color_range=tv", "pix_fmt=yuv420p", "start_pts=0", "duration_ts=12800", "rotation=-90"})
    CHECK_THAT(facts, Catch::Contains(want));
  const std::string keys =
      media_files::run("ffprobe -v error -show_entries packet=flags -of csv=p=0 '" + file + "'");
  int since = 0;
  for (std::size_t i = 0; i < keys.size(); i = keys.find('\n', i) + 1) {
    since = keys[i] == 'K' ? 0 : since + 1;
    CHECK(since < 4);
  }
  // Neither a clock nor a build string is in the file.
  CHECK(mp4.find("x264 - core") == std::string::npos);
  CHECK(mp4.find("Lavf") == std::string::npos);
  CHECK(mp4.find("Lavc") == std::string::npos);
  const Clip clip = decode_clip(mp4);
  CHECK(clip.info.rotation == 90);
  CHECK(clip.info.sample_aspect == Rational{4, 3});
  CHECK(clip.info.display_width == 64);
  CHECK(clip.info.display_height == 128);
}

TEST_CASE("odd sizes are kept, or padded where the codec cannot") {
  for (const std::string& name : available_encoders()) {
    if (name == "h264_nvenc") continue;
    CAPTURE(name);
    const EncodeOptions options = options_for(name, 97, 65);
    const VideoEncoder probe(options);
    const Clip clip = decode_clip(encode(options));
    CHECK(clip.info.width == probe.coded_width());
    CHECK(clip.info.height == probe.coded_height());
    CHECK((probe.coded_width() == 97 || probe.coded_width() == 98));
    REQUIRE(clip.frames.size() == 5);
    RgbImage got = rgb(clip.frames[2]);
    // The picture itself is whole: padding is outside.
    RgbImage cut{97, 65, {}};
    for (int y = 0; y < 65; ++y)
      for (int x = 0; x < 3 * 97; ++x)
        cut.pixels.push_back(got.pixels[static_cast<std::size_t>(3 * y * got.width + x)]);
    CHECK(psnr(cut, test_picture(97, 65, 2)) > 28);
  }
}

TEST_CASE("every layout and range can be encoded") {
  const auto layout = GENERATE(PixelLayout::yuv420, PixelLayout::yuv422, PixelLayout::yuv444,
                               PixelLayout::gray, PixelLayout::rgb24);
  const bool full = GENERATE(false, true);
  CAPTURE(static_cast<int>(layout), full);
  Frame frame = make_frame(layout, 64, 48);
  for (int p = 0; p < plane_count(layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y)
      for (int x = 0; x < plane_row_bytes(frame, p); ++x)
        writable(frame, p)[y * frame.stride[p] + x] =
            static_cast<std::uint8_t>(p == 0 ? 60 + x / 2 + y : 100 + 30 * p);
  if (layout != PixelLayout::rgb24) frame.full_range = full;
  frame.duration = 40;
  const RgbImage want = rgb(frame);
  for (const char* name : {"libx264", "mpeg4", "ffv1"}) {
    CAPTURE(name);
    VideoEncoder encoder(options_for(name, 64, 48));
    encoder.add(frame);
    const Clip clip = decode_clip(encoder.finish());
    REQUIRE(clip.frames.size() == 1);
    CHECK(clip.frames[0].duration * 1000 == 40 * clip.info.time_base.den);
    CHECK(psnr(rgb(clip.frames[0]), want) > 33);
    if (std::string(name) == "ffv1" && layout != PixelLayout::gray && !frame.full_range)
      CHECK(frame_hash(clip.frames[0]) == frame_hash(frame));
    if (std::string(name) == "ffv1" && layout == PixelLayout::rgb24)
      CHECK(frame_hash(clip.frames[0]) == frame_hash(frame));
    if (std::string(name) == "libx264" && layout != PixelLayout::rgb24)
      CHECK(clip.frames[0].full_range == full);
  }
}

TEST_CASE("a stream that changes its resolution becomes one clip") {
  VideoEncoder encoder(options_for("libx264", 96, 64));
  encoder.add(test_picture(96, 64), 0);
  encoder.add(test_picture(192, 128), 40);
  const Clip clip = decode_clip(encoder.finish());
  REQUIRE(clip.frames.size() == 2);
  CHECK(clip.frames[1].width == 96);
}

TEST_CASE("wrong encoder options are found before any work") {
  const auto refuses = [](EncodeOptions options, const char* text) {
    try {
      VideoEncoder encoder(options);
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK_THAT(error.what(), Catch::Contains(text));
    }
  };
  const EncodeOptions good = options_for("libx264", 96, 64);
  EncodeOptions o = good;
  o.encoder = "libx267";
  refuses(o, "unknown encoder 'libx267' (available: libx264");
  o = good, o.quality = 52;
  refuses(o, "quality 52 is outside 0..51");
  o = good, o.preset = "warp";
  refuses(o, "encoder 'libx264' has no preset 'warp'");
  o = good, o.encoder = "mpeg4", o.preset = "fast";
  refuses(o, "encoder 'mpeg4' has no presets");
  o = good, o.width = 0;
  refuses(o, "0x64");
  o = good, o.time_base = {0, 1};
  refuses(o, "time base 0/1");
  o = good, o.threads = 0;
  refuses(o, "0 threads");
  o = good, o.gop = -1;
  refuses(o, "-1 frames");
}

TEST_CASE("wrong use of an encoder is an error") {
  CHECK_THROWS_WITH(VideoEncoder(options_for("libx264", 64, 48)).finish(), "no frame to encode");
  VideoEncoder encoder(options_for("libx264", 64, 48));
  encoder.add(test_picture(64, 48), 40);
  CHECK_THROWS_WITH(encoder.add(test_picture(64, 48), 40),
                    "frame at pts 40 does not come after the previous frame");
  CHECK(encoder.finish().size() > 100);
  CHECK_THROWS_AS(encoder.finish(), Error);
  CHECK_THROWS_AS(encoder.add(test_picture(64, 48), 80), Error);
}

TEST_CASE("an abandoned encoder goes quietly") {
  for (const std::string& name : available_encoders()) {
    if (name == "h264_nvenc") continue;
    VideoEncoder unused(options_for(name, 96, 64));
    VideoEncoder begun(options_for(name, 96, 64));
    begun.add(test_picture(96, 64), 0);
  }
}

TEST_CASE("the default encoder is the first that works") {
  const std::string name = default_encoder();
  const auto all = available_encoders();
  CHECK(std::find(all.begin(), all.end(), name) != all.end());
  EncodeOptions options = options_for("", 64, 48);
  CHECK(VideoEncoder(options).encoder_name() == name);
  if (all.front() == "libx264") CHECK(name == "libx264");
}

TEST_CASE("where no GPU has NVENC, the error names each of them and says why") {
  const auto names = available_encoders();
  if (std::find(names.begin(), names.end(), "h264_nvenc") == names.end()) {
    WARN("skipped: this FFmpeg has no h264_nvenc");
    return;
  }
  static std::string said;
  said.clear();
  set_log_sink([](LogLevel, std::string_view words) { said += words; }, LogLevel::warning);
  // Numbers that no machine has.
  share::EngineSessions sessions("", {{900, "GPU-a", kMemory, 2}, {901, "GPU-b", kMemory, 1}},
                                 "test", share::GpuKind::encode, share::EngineSessions::Wait::yes);
  set_encode_sessions(&sessions);
  EncodeOptions options = options_for("h264_nvenc", 256, 256);
  options.preset = "p1";  // with which no other test asks
  try {
    VideoEncoder{options};
    FAIL("an encoder opened on GPUs that are not there");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK_THAT(error.what(), Catch::Contains("no device is left for test") &&
                                 Catch::Contains("'GPU-a': cannot open encoder 'h264_nvenc'") &&
                                 Catch::Contains("'GPU-b': cannot open"));
  }
  CHECK_THAT(said, Catch::Contains("device 'GPU-a' is left out") &&
                       Catch::Contains("device 'GPU-b' is left out"));
  set_encode_sessions(nullptr);
  set_log_sink(nullptr, LogLevel::warning);
}

TEST_CASE("a thread with an open encoder waits for no other, and the error says so") {
  share::EngineSessions sessions("", {{900, "GPU-a", kMemory, 1}}, "test", share::GpuKind::encode,
                                 share::EngineSessions::Wait::yes);
  set_encode_sessions(&sessions);
  const auto held = sessions.take(1);
  CHECK_THROWS_WITH(take_encode_session(nvenc_kind(), 256, 256),
                    Catch::Contains("may not wait for one"));
  set_encode_sessions(nullptr);
}

TEST_CASE("own sessions of a GPU without NVENC are an error that says why") {
  const EncoderKind kind = nvenc_kind();
  if (why_not_opened(kind, "", 8).empty()) {
    WARN("skipped: this machine has NVENC");
    return;
  }
  share::EngineSessions sessions(3);
  set_encode_sessions(&sessions);
  CHECK_THROWS_WITH(take_encode_session(kind, 256, 256),
                    Catch::Contains("cannot open encoder 'h264_nvenc'"));
  set_encode_sessions(nullptr);
}

TEST_CASE("an encoder for which no session was free is asked for again") {
  const auto names = available_encoders();
  if (std::find(names.begin(), names.end(), "h264_nvenc") == names.end()) {
    WARN("skipped: this FFmpeg has no h264_nvenc");
    return;
  }
  share::EngineSessions sessions("", {{900, "GPU-a", kMemory, 1}}, "test", share::GpuKind::encode,
                                 share::EngineSessions::Wait::yes);
  set_encode_sessions(&sessions);
  EncodeOptions options = options_for("h264_nvenc", 256, 256);
  options.preset = "p3";  // with which no other test asks
  const auto says = [&] {
    try {
      VideoEncoder{options};
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto held = sessions.take(1);
  CHECK_THAT(says(), Catch::Contains("may not wait"));
  held.reset();
  CHECK_THAT(says(), !Catch::Contains("may not wait"));
  set_encode_sessions(nullptr);
}

TEST_CASE("whether an encoder opens is asked without a lock") {
  const auto names = available_encoders();
  if (std::find(names.begin(), names.end(), "h264_nvenc") == names.end()) {
    WARN("skipped: this FFmpeg has no h264_nvenc");
    return;
  }
  share::EngineSessions sessions("", {{900, "GPU-a", kMemory, 1}}, "test", share::GpuKind::encode,
                                 share::EngineSessions::Wait::yes);
  set_encode_sessions(&sessions);
  auto held = sessions.take(1);
  std::atomic<bool> asked = false, refused = false;
  std::thread waits([&] {
    asked = true;
    EncodeOptions options = options_for("h264_nvenc", 256, 256);
    options.preset = "p2";  // with which no other test asks
    try {
      VideoEncoder{options};
    } catch (const Error&) {
      refused = true;
    }
  });
  while (!asked)
    std::this_thread::yield();
  // With the lock this would wait for that session, too, which is given back behind it.
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  std::atomic<bool> opened = false;
  std::thread other([&] {
    VideoEncoder{options_for("ffv1", 64, 48)};
    opened = true;
  });
  for (int i = 0; i < 10'000 && !opened; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(opened);
  CHECK_FALSE(refused);
  held.reset();
  other.join();
  waits.join();
  set_encode_sessions(nullptr);
}

TEST_CASE("encoders that are not on a GPU take no session") {
  share::EngineSessions sessions("", {{0, "GPU-a", kMemory, 1}}, "test", share::GpuKind::encode,
                                 share::EngineSessions::Wait::no);
  set_encode_sessions(&sessions);
  const auto held = sessions.take(1);
  VideoEncoder encoder(options_for("ffv1", 64, 64));
  encoder.add(to_frame(test_picture(64, 64, 0)));
  CHECK_FALSE(encoder.finish().empty());
  set_encode_sessions(nullptr);
}
