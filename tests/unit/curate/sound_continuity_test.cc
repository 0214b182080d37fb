// What is said of sound across a change, on sounds whose truth is known.
// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/sound_continuity.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "curate/shots/stitch.h"

using namespace vfm::curate;

namespace {

using Sound = std::vector<float>;
constexpr std::size_t kSecond = std::size_t{kContinuityRate} * kContinuityChannels;

/// Noise of a root mean square of `level`, both channels; `smooth` 0 to 1: the darker the higher.
Sound noise(unsigned key, double seconds, double level, double smooth) {
  Sound sound(2 * static_cast<std::size_t>(seconds * kContinuityRate));
  const vfm::Random random(1, vfm::Purpose::test, 0, key);
  double low = 0, squares = 0;
  for (std::size_t i = 0; i < sound.size() / 2; ++i) {
    low = smooth * low + (1 - smooth) * static_cast<double>(random.normal(i));
    squares += low * low;
    sound[2 * i] = sound[2 * i + 1] = static_cast<float>(low);
  }
  const double gain = level / std::sqrt(squares / static_cast<double>(sound.size() / 2));
  for (float& x : sound)
    x *= static_cast<float>(gain);
  return sound;
}

/// Tones of changing pitch, four a second, that come and go, over all that is there.
Sound with_syllables(Sound sound, unsigned key) {
  const vfm::Random random(2, vfm::Purpose::test, 0, key);
  for (std::size_t i = 0; i < sound.size() / 2; ++i) {
    const double t = static_cast<double>(i) / kContinuityRate;
    const auto syllable = static_cast<std::uint64_t>(4 * t);
    const double pitch = 120 + 80 * random.uniform(syllable);
    const double open = std::max(0.0, std::sin(2 * std::numbers::pi * 4 * t));
    double voice = 0;
    for (int k = 1; k < 20; ++k)
      voice += std::sin(2 * std::numbers::pi * k * pitch * t) / k;
    sound[2 * i] += static_cast<float>(0.05 * open * voice);
    sound[2 * i + 1] += static_cast<float>(0.05 * open * voice);
  }
  return sound;
}

double continuity(const Sound& before, const Sound& after) {
  return sound_continuity(before, after).value().continuity;
}

Sound louder(Sound sound, double decibels) {
  for (float& x : sound)
    x *= static_cast<float>(std::pow(10, decibels / 20));
  return sound;
}

}  // namespace

TEST_CASE("a room goes on, with or without who speaks in it, and another room does not") {
  const Sound room = noise(1, 1, 0.01, 0.5), later = noise(2, 1, 0.01, 0.5);
  CHECK(continuity(room, later) > 0.9);
  CHECK(continuity(with_syllables(room, 1), with_syllables(later, 2)) > 0.8);
  CHECK(continuity(room, with_syllables(later, 2)) > 0.6);
  const Sound other = noise(3, 1, 0.01, 0.95);
  CHECK(continuity(room, other) < 0.1);
  CHECK(continuity(with_syllables(room, 1), with_syllables(other, 2)) < 0.3);
  CHECK(continuity(room, louder(later, 12)) < 0.1);
  // The more it changes the less it goes on, about the same whichever side is louder.
  double last = 1;
  for (const double step : {0.0, 1.0, 3.0, 6.0, 12.0}) {
    const double now = continuity(room, louder(later, step));
    CHECK(now < last);
    CHECK(now == Approx(continuity(louder(later, step), room)).margin(0.1));
    last = now;
  }
}

TEST_CASE("silence on both sides says nothing, on one side that sound breaks") {
  const Sound room = noise(1, 1, 0.01, 0.5), none(kSecond);
  CHECK(!sound_continuity(none, none));
  CHECK(!sound_continuity(louder(room, -25), louder(room, -25)));
  CHECK(continuity(room, none) < 0.05);
  CHECK(continuity(none, room) < 0.05);
  // One channel is enough to be heard, and opposite channels are no silence.
  Sound left = room, opposite = room;
  for (std::size_t i = 1; i < room.size(); i += 2)
    left[i] = 0, opposite[i] = -opposite[i];
  CHECK(continuity(left, left) > 0.95);
  CHECK(continuity(room, opposite) > 0.95);
}

TEST_CASE("only what is beside the change counts, and too little of it says nothing") {
  const Sound room = noise(1, 3, 0.01, 0.5);
  const Sound before(room.begin(), room.begin() + kSecond),
      after(room.begin() + kSecond, room.begin() + 2 * kSecond);
  Sound longer = noise(9, 2, 0.3, 0.9);
  longer.insert(longer.end(), before.begin(), before.end());
  CHECK(continuity(longer, after) == continuity(before, after));
  // Faded out and in over 60 ms.
  Sound faded = before, rising = after;
  constexpr std::size_t kFade = kSecond * 6 / 100;
  for (std::size_t i = 0; i < kFade; ++i) {
    faded[faded.size() - 1 - i] *= static_cast<float>(i) / kFade;
    rising[i] *= static_cast<float>(i) / kFade;
  }
  CHECK(continuity(faded, rising) == continuity(before, after));
  const Sound quarter(room.begin(), room.begin() + kSecond / 4),
      less(room.begin(), room.begin() + kSecond / 4 - 2);
  CHECK(continuity(quarter, after) > 0.8);
  CHECK(!sound_continuity(less, after));
  CHECK(!sound_continuity(after, less));
  CHECK(!sound_continuity({}, {}));
}

TEST_CASE("continuity is what its formula says, and moves the threshold within its bounds") {
  const Sound room = noise(1, 1, 0.01, 0.5), other = noise(3, 1, 0.02, 0.8);
  const SoundContinuity found = sound_continuity(room, other).value();
  const double r = found.apart / (1 + 2 * found.usual);
  CHECK(found.continuity == Approx(1 / (1 + std::pow(r / 0.55, 3))));
  // A step of level is what it is.
  CHECK(sound_continuity(room, louder(room, 6)).value().apart == Approx(6).margin(0.2));
  CHECK(threshold_with_sound(0.6, 0.5) == Approx(0.6));
  CHECK(threshold_with_sound(0.6, 1) == Approx(0.6 - 0.4 * kSoundLowers));
  CHECK(threshold_with_sound(0.6, 0) == Approx(0.6 + 0.4 * kSoundRaises));
  CHECK(threshold_with_sound(0.6, 0.75) == Approx(0.6 - 0.2 * kSoundLowers));
  CHECK(threshold_with_sound(1, 0.2) == 1);
  CHECK(threshold_with_sound(0, 1) <= 0);
}
