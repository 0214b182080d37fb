// Measures of sound, on sounds whose value is known.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "base/philox.h"
#include "media/sound/loudness.h"
#include "media/sound/sound_meter.h"
#include "media/sound/speech_likeness.h"
#include "media_files.h"

using namespace vfm::media;

namespace {

constexpr int kRate = 16000;

/// Noise whose amplitude goes up and down `frequency` times a second.
std::vector<float> noise(double seconds, double frequency) {
  std::vector<float> sound(static_cast<std::size_t>(seconds * kRate));
  vfm::Random(1, vfm::Purpose::test).fill_uniform(sound);
  for (std::size_t i = 0; i < sound.size(); ++i)
    sound[i] = static_cast<float>(
        (sound[i] - 0.5) * (frequency > 0 ? 0.5 - 0.5 * std::cos(2 * std::numbers::pi * frequency *
                                                                 static_cast<double>(i) / kRate)
                                          : 1.0));
  return sound;
}

double likeness(const std::vector<float>& sound) {
  SpeechLikeness meter(kRate);
  // In pieces of any size.
  for (std::size_t at = 0; at < sound.size(); at += 999)
    meter.add(sound.data() + at, std::min<std::size_t>(999, sound.size() - at));
  return meter.result().value();
}

}  // namespace

TEST_CASE("speech: four changes a second are syllables, none, one and fifteen are not") {
  CHECK(likeness(noise(6, 4)) > 0.7);
  CHECK(likeness(noise(6, 0)) < 0.1);
  CHECK(likeness(noise(6, 1)) < 0.25);
  CHECK(likeness(noise(6, 15)) < 0.2);
  CHECK(likeness(std::vector<float>(3 * kRate)) == 0);
  SpeechLikeness brief(kRate);
  brief.add(noise(0.9, 4).data(), static_cast<std::size_t>(0.9 * kRate));
  CHECK(!brief.result());
  SpeechLikeness slow(4000);
  slow.add(noise(3, 4).data(), 3 * kRate);
  CHECK(!slow.result());
}

TEST_CASE("loudness: the first tone of EBU Tech 3341 has -23 LUFS") {
  if (loudness_version().empty()) {
    WARN("skipped: built without libebur128");
    return;
  }
  LoudnessMeter meter({LoudnessWeight::front, LoudnessWeight::front}, 48000);
  LoudnessMeter brief({LoudnessWeight::front, LoudnessWeight::front}, 48000);
  std::vector<float> both(2 * 48000);
  for (int second = 0; second < 10; ++second) {
    for (std::size_t i = 0; i < 48000; ++i)
      both[2 * i] = both[2 * i + 1] =
          static_cast<float>(std::pow(10, -23 / 20.0) * std::sin(2 * std::numbers::pi * 1000 *
                                                                 static_cast<double>(i) / 48000));
    meter.add(both.data(), 48000);
  }
  CHECK(meter.integrated().value() == Approx(-23).margin(0.1));
  brief.add(both.data(), 48000 / 4);
  CHECK(!brief.integrated());
}

TEST_CASE("the sound of a span is measured alone") {
  NEED_FFMPEG();
  const std::string file = media_files::path("half-silent.mkv");
  media_files::run(
      "ffmpeg -v error -y -f lavfi -i testsrc2=size=64x48:rate=10 -f lavfi -i "
      "\"sine=frequency=1000:sample_rate=48000\" -t 4 -af \"volume=enable='lt(t,2)':volume=0\" "
      "-c:v libx264 -preset ultrafast -c:a pcm_s16le '" +
      file + "'");
  SoundMeter meter(file);
  const auto at = [&](std::int64_t begin, std::int64_t end) {
    return meter.measure({begin, end, {1, 1000}}).value();
  };
  CHECK(at(0, 2000).silence == Approx(1).margin(0.001));
  CHECK(!at(0, 2000).loudness);
  CHECK(at(2000, 4000).silence == Approx(0).margin(0.001));
  CHECK(at(1000, 3000).silence == Approx(0.5).margin(0.03));
  // No sound any more, and back again.
  CHECK(at(2000, 6000).silence == Approx(0.5).margin(0.03));
  CHECK(at(0, 1000).silence == 1);
  const std::string mute = media_files::path("mute.mkv");
  media_files::run("ffmpeg -v error -y -i '" + file + "' -an -c copy '" + mute + "'");
  CHECK(!SoundMeter(mute).measure({0, 1000, {1, 1000}}));
  // Fewer samples a second than libebur128 takes.
  const std::string slow = media_files::path("slow.mkv");
  media_files::run("ffmpeg -v error -y -i '" + mute +
                   "' -f lavfi -i aevalsrc=0.5:s=8 -t 2 -c:v copy -c:a pcm_s16le '" + slow + "'");
  CHECK(!SoundMeter(slow).measure({0, 1000, {1, 1000}}));
}
