// Samples of a span: in time, and of one form whatever the source has.
// SPDX-License-Identifier: Apache-2.0
#include "media/sound/sound_samples.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "media_files.h"

using namespace vfm::media;

namespace {

/// A second of a tone from 1 s on, in both halves of which nothing else is heard.
std::string made(const std::string& name, const std::string& sound, const std::string& more = "") {
  std::string file = media_files::path(name);
  media_files::run(
      "ffmpeg -v error -y -f lavfi -i testsrc2=size=64x48:rate=10 -f lavfi " + more +
      " -i \"aevalsrc='0.2*sin(2*PI*500*t)*between(t,1,2)':s=48000\" -t 3 -c:v libx264 -preset "
      "ultrafast -g 5 " +
      sound + " '" + file + "'");
  return file;
}

/// The first sample that is heard, in seconds after the span's beginning; its root mean square from
/// there on.
struct Onset {
  double at = -1, level = 0;
};
Onset onset(const SoundSamples::Heard& heard) {
  Onset found;
  const std::vector<float>& s = heard.samples;
  const auto first = std::find_if(s.begin(), s.end(), [](float x) { return std::abs(x) > 0.02f; });
  if (first == s.end()) return found;
  const auto place = (first - s.begin()) / SoundSamples::kChannels;
  found.at = static_cast<double>(heard.begin + place) / SoundSamples::kRate;
  double squares = 0;
  for (auto i = first; i != s.end(); ++i)
    squares += double{*i} * *i;
  found.level = std::sqrt(squares / static_cast<double>(s.end() - first));
  return found;
}

}  // namespace

TEST_CASE("samples are in time, of any rate, channels, codec and container") {
  NEED_FFMPEG();
  struct Case {
    const char *name, *sound;
    double level;
  };
  constexpr double kTone = 0.2 * 0.7071;
  // One channel goes to both by half of its power, here or when the file was made.
  for (const Case& one :
       {Case{"a.mkv", "-c:a pcm_s16le -ar 8000 -ac 1", kTone * 0.7071},
        {"b.mkv", "-c:a flac -ar 11025 -ac 2", kTone * 0.7071},
        {"c.mp4", "-c:a aac -ar 44100 -ac 2", kTone * 0.7071},
        {"d.ts", "-c:a aac -ar 48000 -ac 2", kTone * 0.7071},
        {"e.mkv", "-c:a ac3 -ar 48000 -ac 6", 0},
        {"f.mkv", "-c:a pcm_f32le -ar 48000 -af 'pan=stereo|c0=c0|c1=-1*c0'", kTone}}) {
    CAPTURE(one.name);
    SoundSamples samples(made(one.name, one.sound));
    // Of the transport stream the times do not begin at zero.
    const double begin =
        std::string(one.name) == "d.ts"
            ? std::stod(media_files::run("ffprobe -v error -select_streams v "
                                         "-show_entries stream=start_time -of csv=p=0 '" +
                                         media_files::path(one.name) + "'"))
            : 0;
    const auto from = std::llround((begin + 0.8) * 1000);
    const SoundSamples::Heard heard = samples.read({from, from + 500, {1, 1000}}).value();
    CHECK(heard.begin == 0);
    CHECK(heard.samples.size() == 2 * SoundSamples::kRate / 2);
    CHECK(onset(heard).at == Approx(0.2).margin(0.006));
    if (one.level > 0) CHECK(onset(heard).level == Approx(one.level).epsilon(0.08));
    // The same again, after another place.
    CHECK(samples.read({from + 900, from + 1000, {1, 1000}}));
    CHECK(samples.read({from, from + 500, {1, 1000}})->samples == heard.samples);
  }
}

TEST_CASE("samples stay in time where the source changes its rate and channels") {
  NEED_FFMPEG();
  const auto part = [](const std::string& name, const std::string& form, const std::string& at) {
    media_files::run(
        "ffmpeg -v error -y -f lavfi -i testsrc2=size=64x48:rate=10 -f lavfi -i "
        "\"aevalsrc='0.2*sin(2*PI*500*t)*between(t,0.5,1)':s=48000\" -t 1.5 -c:v mpeg2video -g 5 "
        "-c:a mp2 -muxdelay 0 " +
        form + " -output_ts_offset " + at + " '" + media_files::path(name) + "'");
    return "'" + media_files::path(name) + "' ";
  };
  const std::string slow = "-ar 32000 -ac 1", fast = "-ar 44100 -ac 2";
  for (const bool rises : {true, false}) {
    CAPTURE(rises);
    const std::string file = media_files::path("rates.ts");
    media_files::run("cat " + part("first.ts", rises ? slow : fast, "1") +
                     part("second.ts", rises ? fast : slow, "2.5") + "> '" + file + "'");
    const auto begin = std::llround(
        1000 * std::stod(media_files::run("ffprobe -v error -select_streams v -show_entries "
                                          "stream=start_time -of csv=p=0 '" +
                                          file + "'")));
    // From within the first part, whose tone has ended, to that of the second.
    const SoundSamples::Heard heard =
        SoundSamples(file).read({begin + 1200, begin + 2300, {1, 1000}}).value();
    CHECK(heard.begin == 0);
    CHECK(heard.samples.size() == 2 * SoundSamples::kRate * 11 / 10);
    CHECK(onset(heard).at == Approx(0.8).margin(0.006));
  }
}

TEST_CASE("what a source does not have of a span is not there") {
  NEED_FFMPEG();
  // Sound that begins 1.5 s late: the tone is at 2.5 s.
  SoundSamples late(made("late.mkv", "-c:a pcm_s16le -ac 1", "-itsoffset 1.5"));
  const SoundSamples::Heard part = late.read({1000, 2000, {1, 1000}}).value();
  CHECK(part.begin == Approx(SoundSamples::kRate / 2).margin(2));
  CHECK(part.begin + static_cast<std::int64_t>(part.samples.size()) / 2 == SoundSamples::kRate);
  CHECK(late.read({0, 1000, {1, 1000}})->samples.empty());
  CHECK(onset(*late.read({2000, 3000, {1, 1000}})).at == Approx(0.5).margin(0.006));
  CHECK(late.read({9000, 9500, {1, 1000}})->samples.empty());
  CHECK(late.read({500, 500, {1, 1000}})->samples.empty());
  // The end of the sound, and no more than ten seconds.
  const SoundSamples::Heard end = late.read({2500, 60'000, {1, 1000}}).value();
  CHECK(static_cast<double>(end.samples.size()) / 2 / SoundSamples::kRate ==
        Approx(0.5).margin(0.3));

  const std::string mute = media_files::path("no-sound.mkv"), two = media_files::path("two.mkv"),
                    slow = media_files::path("slow-sound.mkv");
  const std::string file = media_files::path("late.mkv");
  media_files::run("ffmpeg -v error -y -i '" + file + "' -an -c copy '" + mute + "'");
  media_files::run("ffmpeg -v error -y -i '" + file + "' -map 0:v -map 0:a -map 0:a -c copy '" +
                   two + "'");
  media_files::run("ffmpeg -v error -y -i '" + file + "' -c:v copy -c:a pcm_s16le -ar 4000 '" +
                   slow + "'");
  CHECK(!SoundSamples(mute).read({0, 1000, {1, 1000}}));
  CHECK(!SoundSamples(two).read({1600, 2000, {1, 1000}}));
  CHECK(!SoundSamples(slow).read({1600, 2000, {1, 1000}}));
}

TEST_CASE("samples that are no numbers become silence, and none is beyond its bounds") {
  NEED_FFMPEG();
  const std::string wild = media_files::path("wilder.mkv");
  media_files::run(
      "ffmpeg -v error -y -f lavfi -i testsrc2=size=64x48:rate=10 -f lavfi -i "
      "\"aevalsrc='if(lt(t,0.5),1e30,0/0)|100':s=16000\" -t 1 -c:v libx264 -c:a pcm_f32le '" +
      wild + "'");
  const SoundSamples::Heard heard = SoundSamples(wild).read({0, 900, {1, 1000}}).value();
  REQUIRE(heard.samples.size() > 20000);
  CHECK(std::all_of(heard.samples.begin(), heard.samples.end(),
                    [](float x) { return std::isfinite(x) && std::abs(x) <= 8; }));
  CHECK(heard.samples[0] == 8);
}
