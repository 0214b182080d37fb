// SPDX-License-Identifier: Apache-2.0
#include "media/sound/audio.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "media_files.h"
#include "test_picture.h"

namespace {

using namespace vfm;
using namespace vfm::media;
using media_files::path;

// One channel as ffmpeg plays it, at 48 kHz, from a time of the container's own clock on.
std::vector<double> play(const std::string& file, double from = 0) {
  const std::string bytes = media_files::run(
      "ffmpeg -v error -nostdin -copyts -i '" + file +
      "' -map 0:a:0 -af aresample=48000,atrim=start=" + std::to_string(from) + " -ac 1 -f f32le -");
  std::vector<float> samples(bytes.size() / 4);
  std::memcpy(samples.data(), bytes.data(), samples.size() * 4);
  return {samples.begin(), samples.end()};
}

// Root mean square of the difference of samples `from`..`to`, with the second sound shifted by up
// to `lag` samples so that it fits best.
double difference(const std::vector<double>& a, const std::vector<double>& b, int from, int to,
                  int lag = 0) {
  REQUIRE(static_cast<int>(a.size()) >= to);
  REQUIRE(static_cast<int>(b.size()) >= to + lag);
  double best = 1e9;
  for (int shift = -lag; shift <= lag; ++shift) {
    double sum = 0;
    for (int i = from; i < to; ++i) {
      const double d = a[static_cast<std::size_t>(i)] -
                       (i + shift < 0 ? 0 : b[static_cast<std::size_t>(i + shift)]);
      sum += d * d;
    }
    best = std::min(best, std::sqrt(sum / (to - from)));
  }
  return best;
}

// What the mp4 says, in samples. ffmpeg plays the last AAC packet to its end all the same.
std::int64_t length_of(const std::string& file) {
  return std::stoll(
      media_files::run("ffprobe -v error -select_streams a -show_entries "
                       "stream=duration_ts -of csv=p=0 '" +
                       file + "'"));
}

// A clip of the span with this sound; its path.
std::string make_clip(const AudioTrack& track, double seconds, const std::string& name) {
  EncodeOptions options;
  options.encoder = "libx264";
  options.width = 64, options.height = 48;
  options.time_base = {1, 25};
  options.frame_rate = {25, 1};
  VideoEncoder encoder(options);
  for (int i = 0; i < std::lround(seconds * 25); ++i)
    encoder.add(test_picture(64, 48, i), i);
  encoder.add_audio(track);
  media_files::write(path(name), encoder.finish());
  return path(name);
}

const Span kSpan{500, 1500, {1, 1000}};

}  // namespace

TEST_CASE("copied sound keeps its packets and its time") {
  NEED_FFMPEG();
  const auto [name, codec] = GENERATE(table<const char*, const char*>(
      {{"plain.mp4", "aac"}, {"open_gop.mkv", "opus"}, {"program.ts", "mp2"}}));
  CAPTURE(name);
  AudioReader reader(path(name));
  Span span = kSpan;
  // MPEG-TS does not start at zero.
  const StreamInfo info = Decoder(path(name)).info();
  Decoder decoder(path(name));
  Frame first;
  REQUIRE(decoder.next(first));
  if (std::string(name) == "program.ts") {
    span.base = info.time_base;
    span.begin = first.pts + info.time_base.den / 2;
    span.end = span.begin + info.time_base.den;
  }
  const AudioTrack track = reader.read(span, AudioMode::copy);
  CHECK(track.codec() == codec);
  CHECK_FALSE(track.encoded());
  CHECK(track.corrupt() == 0);
  const std::string clip = make_clip(track, 1, "copy.mp4");
  const auto got = play(clip);
  const auto want = play(path(name), span.begin_seconds());
  CHECK(got.size() >= 48000);
  CHECK(got.size() < 48000 + 2 * 1200);
  if (std::string(name) == "plain.mp4")
    CHECK(difference(got, want, 0, 47000) < 1e-4);
  else  // Matroska counts milliseconds: half of one is 24 samples
    CHECK(difference(got, want, 480, 47000, 30) < 0.01);
  Decoder check(clip);
  // mp4 has one name for MPEG audio of all layers.
  CHECK(check.info().audio_codec == (std::string(codec) == "mp2" ? "mp3" : codec));
  CHECK(check.info().duration == Approx(1));
  // Reading again, after another span, gives the same.
  reader.read({0, 100, {1, 1000}}, AudioMode::copy);
  make_clip(reader.read(span, AudioMode::copy), 1, "again.mp4");
  CHECK((media_files::read(path("again.mp4")) == media_files::read(clip)));
}

TEST_CASE("encoded sound is cut to the sample") {
  NEED_FFMPEG();
  const auto name = GENERATE("plain.mp4", "pcm.mov", "open_gop.mkv");
  CAPTURE(name);
  AudioReader reader(path(name));
  const AudioTrack track = reader.read(kSpan, AudioMode::aac);
  CHECK(track.codec() == "aac");
  CHECK(track.encoded());
  const std::string clip = make_clip(track, 1, "encoded_sound.mp4");
  const auto got = play(clip);
  CHECK(length_of(clip) == 48000);
  CHECK(got.size() >= 48000);
  CHECK(difference(got, play(path(name), 0.5), 0, 47000, 30) < 0.01);
  make_clip(reader.read(kSpan, AudioMode::aac), 1, "again.mp4");
  CHECK((media_files::read(path("again.mp4")) == media_files::read(clip)));
}

TEST_CASE("copy encodes what mp4 cannot hold, and says so") {
  NEED_FFMPEG();
  AudioReader reader(path("pcm.mov"));
  const AudioTrack track = reader.read(kSpan, AudioMode::copy);
  CHECK(track.codec() == "aac");
  CHECK(track.encoded());
}

TEST_CASE("missing sound is silence or nothing") {
  NEED_FFMPEG();
  CHECK(AudioReader(path("long_gop.mp4")).read(kSpan, AudioMode::copy).empty());
  CHECK(AudioReader(path("plain.mp4")).read(kSpan, AudioMode::drop).empty());
  CHECK(AudioReader(path("plain.mp4")).read({9000, 9500, {1, 1000}}, AudioMode::copy).empty());
  CHECK(AudioReader(path("plain.mp4")).read({9000, 9500, {1, 1000}}, AudioMode::aac).empty());
  CHECK(AudioReader(path("plain.mp4")).read({500, 500, {1, 1000}}, AudioMode::aac).empty());
  // Sound for 0.6..1.1 s and again from 1.6 s of what becomes a clip of 0..2 s.
  media_files::run("cd '" + path("") +
                   "' && ffmpeg -v error -nostdin -y -i pcm.mov -map 0:a -af "
                   "\"aselect='between(t,0.6,1.1)+gte(t,1.6)'\" -c:a pcm_s16le gaps.mkv");
  for (const AudioMode mode : {AudioMode::copy, AudioMode::aac}) {
    const AudioTrack track = AudioReader(path("gaps.mkv")).read({0, 2000, {1, 1000}}, mode);
    const auto got = play(make_clip(track, 2, "gaps.mp4"));
    REQUIRE(got.size() >= 96000);
    const auto loud = [&](double from, double to) {
      double sum = 0;
      const auto a = static_cast<std::size_t>(from * 48000);
      const auto b = static_cast<std::size_t>(to * 48000);
      for (std::size_t i = a; i < b; ++i)
        sum += got[i] * got[i];
      return std::sqrt(sum / static_cast<double>(b - a));
    };
    CHECK(loud(0, 0.5) < 0.001);
    CHECK(loud(0.7, 1.0) > 0.05);
    CHECK(loud(1.2, 1.5) < 0.001);
    CHECK(loud(1.7, 1.9) > 0.05);
  }
}

TEST_CASE("sound that AAC does not have is converted") {
  NEED_FFMPEG();
  media_files::run(
      "cd '" + path("") +
      "' && ffmpeg -v error -nostdin -y -f lavfi -i "
      "'sine=r=37000:d=1' -c:a pcm_u8 -ac 1 strange.wav -f lavfi -i "
      "'sine=r=44100:d=1' -map 1 -af pan='7.0|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0|c6=c0' "
      "-c:a pcm_s16le seven.wav");
  for (const char* name : {"strange.wav", "seven.wav"}) {
    CAPTURE(name);
    const AudioTrack track = AudioReader(path(name)).read({200, 800, {1, 1000}}, AudioMode::copy);
    CHECK(track.codec() == "aac");
    const std::string clip = make_clip(track, 0.6, "strange.mp4");
    CHECK(length_of(clip) == (std::string(name) == "seven.wav" ? 26460 : 28800));
    CHECK(play(clip).size() >= 28800);
  }
}

TEST_CASE("audio modes have names") {
  CHECK(parse_audio_mode("drop") == AudioMode::drop);
  CHECK(parse_audio_mode("copy") == AudioMode::copy);
  CHECK(parse_audio_mode("aac") == AudioMode::aac);
  CHECK_THROWS_WITH(parse_audio_mode("mp3"), "unknown audio mode 'mp3' (drop, copy or aac)");
}
