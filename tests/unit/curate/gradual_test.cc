// Gradual changes to and from what is plain, or another picture in each frame.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "drawn_shots.h"

using namespace drawn_shots;
using namespace vfm::curate;
using drawing::Texture;
using drawing::Yuv;
using vfm::media::Frame;

namespace {

/// How much of the new shot frame i shows, if `length` frames from `from` on are mixed.
double share_at(int i, int from, int length) {
  return std::clamp((i - from + 1) / (length + 1.0), 0.0, 1.0);
}

/// Frame i of a scene in which each frame is another picture, always of the same colours.
Texture crowd(int i, Yuv base) {
  return Texture(1000 + static_cast<std::uint64_t>(i), 2, base);
}

}  // namespace

TEST_CASE("a plain picture that stays between two gradual changes is a shot") {
  const Texture before(1), soft(2, 60);
  const Yuv ground{235, 120, 135};
  for (const int stays : {12, 60, 120}) {
    for (const int out : {6, 40}) {
      const int back = 50 + 6 + stays;
      Video video;
      for (int i = 0; i < back + out + 60; ++i)
        video.push_back(drawn([&](int x, int y) {
          const Yuv old = drawing::mix(before.at(x + 0.2 * i, y), ground, share_at(i, 50, 6));
          return drawing::mix(old, soft.at(x, y), share_at(i, back, out));
        }));
      const auto changes = detect(video);
      INFO("stays " << stays << ", out " << out << ": " << text_of(changes));
      if (stays == 12) {
        CHECK(changes.size() == 1);
        continue;
      }
      REQUIRE(changes.size() == 2);
      CHECK(changes[0].frame >= 50);
      CHECK(changes[0].frame <= 56);
      CHECK(changes[1].end >= changes[0].begin + stays - 2);
      CHECK(changes[1].frame >= back);
      CHECK(changes[1].frame <= back + out);
    }
  }
}

TEST_CASE("a plain picture that was faded to ends by a cut, or goes on as something enters") {
  const Texture before(1), after(2);
  const Yuv ground{235, 120, 135};
  for (const bool enters : {false, true}) {
    Video video;
    for (int i = 0; i < 180; ++i)
      video.push_back(drawn([&](int x, int y) {
        if (i < 120) return drawing::mix(before.at(x + 0.2 * i, y), ground, share_at(i, 50, 6));
        const int edge = kWidth - 2 * std::min(i - 119, 12);
        return enters && (x < edge || y < 24 || y > 50) ? ground : after.at(x - edge, y);
      }));
    const auto changes = detect(video);
    INFO("enters " << enters << ": " << text_of(changes));
    REQUIRE(changes.size() == (enters ? 1 : 2));
    CHECK(changes[0].frame >= 50);
    CHECK(changes[0].frame <= 56);
    if (!enters) {
      CHECK(changes[1].frame == 120);
      CHECK(changes[1].type == ChangeType::cut);
    }
  }
}

TEST_CASE("a ground that something enters soon after a dissolve to it begins the shot") {
  const Texture before(1);
  const Yuv ground{70, 180, 90};
  Video video;
  for (int i = 0; i < 120; ++i)
    video.push_back(drawn([&](int x, int y) {
      const int edge = kWidth - 3 * std::min(std::max(i - 59, 0), 8);
      if (x >= edge && y > 20 && y < 44) return Yuv{230};
      return drawing::mix(before.at(x, y), ground, share_at(i, 50, 5));
    }));
  const auto changes = detect(video);
  INFO(text_of(changes));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].frame >= 50);
  CHECK(changes[0].frame <= 55);
}

TEST_CASE("a short dissolve between scenes in which each frame is another picture") {
  const Yuv one{40, 78, 78}, other{0, 100, 40};
  for (const int length : {3, 5, 7}) {
    for (const bool same : {false, true}) {
      Video video;
      for (int i = 0; i < 130; ++i) {
        const Texture a = crowd(2 * i, one), b = crowd(2 * i + 1, same ? one : other);
        video.push_back(drawn([&](int x, int y) {
          return drawing::mix(a.at(x, y), b.at(x, y), share_at(i, 60, length));
        }));
      }
      const auto changes = detect(video);
      INFO("length " << length << ", same " << same << ": " << text_of(changes));
      if (same) {
        CHECK(changes.empty());
        continue;
      }
      REQUIRE(changes.size() == 1);
      CHECK(changes[0].frame >= 60);
      CHECK(changes[0].frame <= 60 + length);
    }
  }
}

TEST_CASE("a restless shot of little contrast between two quiet ones is no long fade") {
  const Texture before(1), after(2);
  for (const int stays : {20, 35, 47}) {
    const int back = 75 + stays;
    Video video;
    for (int i = 0; i < back + 80; ++i) {
      const Texture between = crowd(i, {60, 100, 100});
      video.push_back(drawn([&](int x, int y) {
        const Yuv c = between.at(x, y), dull{128 + 0.4 * (c.y - 128), c.u, c.v};
        const Yuv old = drawing::mix(before.at(x + 0.1 * i, y), dull, share_at(i, 70, 5));
        return drawing::mix(old, after.at(x, y), share_at(i, back, 5));
      }));
    }
    const auto changes = detect(video);
    INFO("stays " << stays << ": " << text_of(changes));
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].frame >= 70);
    CHECK(changes[0].frame <= 75);
    CHECK(changes[1].frame >= back);
    CHECK(changes[1].frame <= back + 5);
  }
}

TEST_CASE("half of a picture that becomes another, and restless, is a cut, a quarter is none") {
  const Texture stays(1), sky(2, 40, {20, 80, 120});
  for (const bool half : {true, false}) {
    Video video;
    for (int i = 0; i < 90; ++i) {
      const Texture noise = crowd(i, {0, 78, 78});
      video.push_back(drawn([&](int x, int y) {
        Yuv c = stays.at(x, y);
        if (x < (half ? kWidth / 2 : 3 * kWidth / 4)) return Yuv{1.6 * c.y - 77, c.u, c.v};
        c = sky.at(x, y);
        if (i < 45) return Yuv{0.3 * c.y + 58, c.u, c.v};
        return Yuv{noise.at(x, y).y > 88 ? 160.0 : 50.0};
      }));
    }
    const auto changes = detect(video);
    INFO("half " << half << ": " << text_of(changes));
    REQUIRE(changes.size() == (half ? 1 : 0));
    if (half) CHECK(changes[0].frame == 45);
  }
}
