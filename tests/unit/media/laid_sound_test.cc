// Where decoded sound lies in a span, sample by sample.
// SPDX-License-Identifier: Apache-2.0
#include "media/sound/laid_sound.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

using namespace vfm::media;

namespace {

constexpr int kLaidRate = 48000, kLaidPiece = 1000;  // samples a frame

double laid_tone(double seconds) {
  return 0.5 * std::sin(2 * std::numbers::pi * 440 * seconds);
}

/// Samples of the tone in two channels, from `at` on.
AvFramePtr laid_frame(int rate, double at, int times) {
  AvFramePtr frame(not_null(av_frame_alloc()));
  frame->format = AV_SAMPLE_FMT_FLT;
  frame->sample_rate = rate;
  frame->nb_samples = times;
  av_channel_layout_default(&frame->ch_layout, 2);
  REQUIRE(av_frame_get_buffer(frame.get(), 0) == 0);
  auto* to = reinterpret_cast<float*>(frame->data[0]);
  for (int i = 0; i < times; ++i)
    for (int c = 0; c < 2; ++c)
      *to++ = static_cast<float>(laid_tone(at + static_cast<double>(i) / rate));
  return frame;
}

struct LaidTone {
  std::vector<int> count;   // how often each sample of the span was given
  std::vector<float> left;  // channel
};

/// Half a second of each rate in turn.
LaidTone lay_in_turn(const std::vector<int>& rates, bool timed, double from, double seconds) {
  const auto length = static_cast<std::size_t>(std::lround(seconds * kLaidRate));
  LaidTone laid{std::vector<int>(length), std::vector<float>(length)};
  LaidSound sound(AV_CHANNEL_LAYOUT_STEREO, kLaidRate, static_cast<std::int64_t>(length));
  double at = 0;
  for (const int rate : rates)
    for (int left = rate / 2; left > 0; left -= kLaidPiece) {
      const int times = std::min(left, kLaidPiece);
      const AvFramePtr frame = laid_frame(rate, at, times);
      const LaidSound::Part part =
          sound.lay(*frame, timed || at == 0 ? std::optional(at - from) : std::nullopt);
      for (std::size_t i = 0; i < part.times; ++i) {
        const auto place = static_cast<std::size_t>(part.begin) + i;
        REQUIRE(place < length);
        ++laid.count[place];
        laid.left[place] = part.samples[2 * i];
      }
      at += static_cast<double>(times) / rate;
    }
  return laid;
}

}  // namespace

TEST_CASE("sound whose rate changes is all there, each sample once and in its place") {
  const std::vector<int> rates = {48000, 44100, 32000, 48000, 96000, 48000};
  const double all = 0.5 * static_cast<double>(rates.size());
  const bool timed = GENERATE(true, false);
  const double from = GENERATE(0.0, 0.7);
  CAPTURE(timed, from);
  const LaidTone laid = lay_in_turn(rates, timed, from, all - from);
  std::size_t holes = 0, twice = 0, wrong = 0;
  for (std::size_t i = 0; i < laid.count.size(); ++i) {
    holes += laid.count[i] == 0;
    twice += laid.count[i] > 1;
    // What a filter sees of a tone that begins or ends is not the tone.
    const double at = from + static_cast<double>(i) / kLaidRate;
    const double edge = std::abs(at * 2 - std::round(at * 2)) / 2;
    wrong += edge > 0.002 && std::abs(laid.left[i] - laid_tone(at)) > 0.01;
  }
  // A change may round to the next sample.
  CHECK(holes <= rates.size());
  CHECK(twice <= rates.size());
  CHECK(wrong == 0);
}

TEST_CASE("sound whose rate falls to next to nothing is refused, as it would need any memory") {
  LaidSound sound(AV_CHANNEL_LAYOUT_STEREO, kLaidRate, kLaidRate);
  CHECK(sound.lay(*laid_frame(kLaidRate, 0, kLaidPiece), 0.0).times > 0);
  CHECK_THROWS_WITH(sound.lay(*laid_frame(16, 0, kLaidPiece), std::nullopt),
                    "sound of 16 Hz is not made sound of 48000 Hz");
  CHECK_NOTHROW(sound.lay(*laid_frame(8000, 0, kLaidPiece), std::nullopt));
}
