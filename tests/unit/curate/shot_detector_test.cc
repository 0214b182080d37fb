// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/shot_detector.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "curate/shots/wipe.h"
#include "drawn_shots.h"

using namespace drawn_shots;
using namespace vfm::curate;
using drawing::Texture;
using drawing::Yuv;
using vfm::media::Frame;

namespace {

/// `count` frames of a shot: a texture that drifts.
void add_shot(Video& video, std::uint64_t seed, int count, double speed = 0.4,
              Yuv base = {40, 78, 78}) {
  const Texture texture(seed, 12, base);
  for (int i = 0; i < count; ++i)
    video.push_back(drawn(texture.shifted(speed * i, 0.2 * i)));
}

/// Frame i of a shot, mixed with a plain colour.
void add_faded(Video& video, std::uint64_t seed, int first, double share,
               Yuv colour = {0, 128, 128}) {
  const Texture texture(seed);
  video.push_back(drawn([&](int x, int y) {
    return drawing::mix(texture.at(x + 0.4 * first, y + 0.2 * first), colour, share);
  }));
}

}  // namespace

TEST_CASE("hard cuts are exact") {
  Video video;
  add_shot(video, 1, 30);
  add_shot(video, 2, 17, 0.4, {0, 100, 60});
  add_shot(video, 3, 41, 0.4, {80, 20, 90});
  add_shot(video, 4, 9, 0.4, {30, 100, 30});
  const auto changes = detect(video);
  CHECK(frames_of(changes) == Frames{30, 47, 88});
  for (const ShotChange& change : changes) {
    CHECK(change.type == ChangeType::cut);
    CHECK(change.begin == change.frame);
    CHECK(change.end == change.frame);
    CHECK(change.score >= default_threshold(Detector::combined));
  }
}

TEST_CASE("a threshold above every score finds nothing") {
  Video video;
  add_shot(video, 1, 30);
  add_shot(video, 2, 30);
  CHECK(detect(video, {.threshold = 1.4}).empty());
}

TEST_CASE("videos of no, one and two frames") {
  CHECK(detect({}).empty());
  Video video;
  add_shot(video, 1, 1);
  CHECK(detect(video).empty());
  add_shot(video, 2, 1);
  CHECK(frames_of(detect(video)) == Frames{1});
}

TEST_CASE("plain colours are shots too") {
  Video video;
  for (const Yuv colour : {Yuv{76, 85, 255}, Yuv{29, 255, 107}, Yuv{255, 128, 128}})
    for (int i = 0; i < 20; ++i)
      video.push_back(drawing::plain(kWidth, kHeight, colour));
  CHECK(frames_of(detect(video)) == Frames{20, 40});
}

TEST_CASE("a small shape on a still ground, other at each cut") {
  const auto shape = [](double cx, double cy, double radius, Yuv colour) {
    return drawing::frame(64, 64, [=](int x, int y) {
      return std::hypot(x - cx, y - cy) < radius ? colour : Yuv{128, 128, 128};
    });
  };
  Video video;
  for (int i = 0; i < 24; ++i)
    video.push_back(shape(12 + i, 20, 8, {76, 85, 235}));
  for (int i = 0; i < 24; ++i)
    video.push_back(shape(40, 50 - i, 8, {29, 240, 107}));
  for (int i = 0; i < 24; ++i)
    video.push_back(shape(50 - i, 45, 6, {210, 30, 145}));
  CHECK(frames_of(detect(video)) == Frames{24, 48});
}

TEST_CASE("what moves, flashes or flickers is no cut") {
  const Texture texture(7, 20), other(8, 6);
  std::vector<float> grains(200 * 200 * 40);
  vfm::Random(3, vfm::Purpose::test).fill_uniform(grains);
  Video pan, fast, flash, flicker, light, noise, passing, still;
  for (int i = 0; i < 120; ++i) {
    pan.push_back(drawn(texture.shifted(1.5 * i, 0)));
    fast.push_back(drawn(texture.shifted(7.0 * i, 3.0 * i)));
    still.push_back(drawn(texture.shifted(0, 0)));
    const bool lit = i % 40 >= 20 && i % 40 < 23;
    flash.push_back(drawn([&](int x, int y) {
      return drawing::mix(texture.at(x + 0.3 * i, y), {250, 128, 128}, lit ? 0.9 : 0);
    }));
    flicker.push_back(drawn([&](int x, int y) {
      Yuv c = texture.at(x, y);
      c.y *= 0.8 + 0.2 * std::sin(1.7 * i);
      return c;
    }));
    light.push_back(drawn([&](int x, int y) {
      Yuv c = texture.at(x, y);
      c.y *= i % 30 < 15 ? 1 : 0.45;
      return c;
    }));
    noise.push_back(drawn([&](int x, int y) {
      return Yuv{255.0 * grains[static_cast<std::size_t>((i % 40 * 200 + y) * 200 + x)]};
    }));
    passing.push_back(drawn([&](int x, int y) {
      const int left = 6 * i - 300;
      return x >= left && x < left + 70 ? other.at(x - left, y) : texture.at(x, y);
    }));
  }
  CHECK(text_of(detect(pan)) == "");
  CHECK(text_of(detect(fast)) == "");
  CHECK(text_of(detect(still)) == "");
  CHECK(text_of(detect(flash)) == "");
  CHECK(text_of(detect(flicker)) == "");
  CHECK(text_of(detect(light)) == "");
  CHECK(text_of(detect(noise)) == "");
  CHECK(text_of(detect(passing)) == "");
}

TEST_CASE("a flash over a scene that is another picture in each frame is no cut") {
  // Half of it stays, half is new in each frame.
  const auto add_snow = [](Video& video, int count, Yuv light, double share, std::uint64_t seed = 5,
                           Yuv base = {40, 78, 78}) {
    const Texture ground(seed, 12, base);
    for (int i = 0; i < count; ++i) {
      const Texture snow(1000 + video.size(), 6, base);
      video.push_back(drawn([&](int x, int y) {
        return drawing::mix(drawing::mix(ground.at(x, y), snow.at(x, y), 0.55), light, share);
      }));
    }
  };
  const Yuv white{255, 128, 128}, dim{200, 120, 136};
  Video flashes, cuts;
  for (const auto& [colour, share] : {std::pair{white, 0.7}, {white, 1.0}, {dim, 0.8}}) {
    add_snow(flashes, 25, white, 0);
    add_snow(flashes, 1, colour, 0.6);
    add_snow(flashes, 2, colour, share);
  }
  add_snow(flashes, 25, white, 0);
  CHECK(text_of(detect(flashes)) == "");
  // Other snow is another shot, and what stays away longer comes back in a new one.
  add_snow(cuts, 30, white, 0);
  add_snow(cuts, 20, white, 0, 6, {0, 100, 60});
  add_snow(cuts, 30, white, 0);
  CHECK(frames_of(detect(cuts)) == Frames{30, 50});
}

TEST_CASE("a flash that fades in over such a scene is none in the first frames of a video either") {
  // Of a fade, frames up to eight away are compared, and here there are not as many.
  const Texture ground(1);
  for (const int flash : {7, 8}) {
    Video video;
    for (int i = 0; i < 60; ++i) {
      const Texture snow(1000 + static_cast<std::uint64_t>(i), 6);
      const double share = i == flash - 2 ? 0.4 : i == flash - 1 ? 0.8 : i == flash ? 1 : 0;
      video.push_back(drawn([&](int x, int y) {
        return drawing::mix(drawing::mix(ground.at(x, y), snow.at(x, y), 0.5), {255, 128, 128},
                            share);
      }));
    }
    CHECK(text_of(detect(video)) == "");
  }
}

TEST_CASE("where each frame is another picture, a cut is told by colours, and a title is none") {
  const auto add_crowd = [](Video& video, Yuv base, bool title) {
    for (int i = 0; i < 30; ++i) {
      const Texture crowd(1000 + video.size(), 5, base);
      video.push_back(drawn([&](int x, int y) {
        if (title && y >= 36 && y < 58 && x > 6 && x < 60) return Yuv{40, 200, 100};
        const Yuv c = crowd.at(x, y);
        return base.u == 128 ? Yuv{c.y, 128, 128} : c;
      }));
    }
  };
  const Yuv one{40, 78, 78}, other{0, 100, 60}, grey{40, 128, 128};
  Video cuts, title;
  for (const Yuv base : {one, other, one})
    add_crowd(cuts, base, false);
  const auto found = detect(cuts);
  CHECK(frames_of(found) == Frames{30, 60});
  for (const ShotChange& cut : found)  // on the scale of the others: just a cut
    CHECK(cut.score == static_cast<float>(default_threshold(Detector::combined)));
  for (const bool shown : {true, false, false})
    add_crowd(title, grey, shown);
  CHECK(text_of(detect(title)) == "");
}

TEST_CASE("one to four foreign frames are an interruption, more a shot if they hardly change") {
  const Texture before(1), other(2), next(3);
  // How many frames, what they show, and whether the scene goes on behind them.
  struct Case {
    int foreign;
    std::function<Yuv(int i, int x, int y)> paint;
    std::size_t cuts;
  };
  const auto shot = [&](int i, int x, int y) { return other.at(x + 0.1 * i, y); };
  const auto flies = [&](int i, int x, int y) { return other.at(x + 24.0 * i, y); };
  const auto changes = [&](int i, int x, int y) { return (i % 2 ? other : next).at(x, y); };
  const auto plain = [](int, int, int) { return Yuv{200, 128, 128}; };
  const std::vector<Case> cases = {{1, shot, 0},    {4, shot, 0},  {5, shot, 2},
                                   {8, shot, 2},    {20, shot, 2}, {5, flies, 0},
                                   {6, changes, 0}, {4, plain, 0}, {6, plain, 0}};
  for (const Case& c : cases) {
    Video video;
    add_shot(video, 1, 30, 0.1);
    for (int i = 0; i < c.foreign; ++i)
      video.push_back(drawn([&](int x, int y) { return c.paint(i, x, y); }));
    for (int i = 30; i < 60; ++i)
      video.push_back(drawn(before.shifted(0.1 * i, 0.2 * i)));
    const auto found = detect(video);
    INFO("case " << &c - cases.data() << ": " << text_of(found));
    CHECK(found.size() == c.cuts);
    if (c.cuts == 2) CHECK(frames_of(found) == Frames{30, 30 + c.foreign});
  }
}

TEST_CASE(
    "a fade through a colour is one change at the first frame of the new shot, or the colour is a "
    "shot") {
  for (const Yuv colour : {Yuv{0, 128, 128}, Yuv{255, 128, 128}, Yuv{81, 90, 240}}) {
    for (const int hold : {1, 6, 30, 150}) {
      Video video;
      add_shot(video, 1, 40);
      for (int i = 1; i <= 12; ++i)
        add_faded(video, 1, 40 + i, i / 12.0, colour);
      for (int i = 1; i < hold; ++i)
        video.push_back(drawing::plain(kWidth, kHeight, colour));
      const auto visible = static_cast<std::int64_t>(video.size());
      for (int i = 1; i <= 12; ++i)
        add_faded(video, 2, i, 1 - i / 12.0, colour);
      add_shot(video, 2, 60);
      const auto changes = detect(video);
      INFO("hold " << hold << ", colour " << colour.y << ": " << text_of(changes));
      const bool shot = colour.y > 0 && hold > 32;
      REQUIRE(changes.size() == (shot ? 2 : 1));
      for (const ShotChange& change : changes) {
        CHECK(change.type == ChangeType::fade);
        CHECK(change.frame == change.begin);
        CHECK((!shot || change.end == change.begin));
      }
      CHECK(std::abs(changes.back().begin - visible) <= 1);
      CHECK(std::abs(changes[0].end - 51) <= 1);
    }
  }
}

TEST_CASE("a fade through grey is seen between black bars too") {
  const auto barred = [](std::uint64_t seed, double at, double share) {
    const Texture texture(seed);
    return drawn([&texture, at, share](int x, int y) {
      if (y < 9 || y >= kHeight - 9) return Yuv{0, 128, 128};
      return drawing::mix(texture.at(x + at, y), {170, 128, 128}, share);
    });
  };
  Video video;
  for (int i = 0; i < 40; ++i)
    video.push_back(barred(1, 0.4 * i, std::clamp((i - 34) / 6.0, 0.0, 1.0)));
  for (int i = 0; i < 60; ++i)
    video.push_back(barred(2, 0.4 * i, std::clamp((16 - i) / 16.0, 0.0, 1.0)));
  const auto changes = detect(video);
  INFO(text_of(changes));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].type == ChangeType::fade);
  CHECK(std::abs(changes[0].frame - 42) <= 3);
}

TEST_CASE("the frames of one colour before the first and after the last shot are nobody's") {
  Video video;
  for (int i = 0; i < 20; ++i)
    video.push_back(drawing::plain(kWidth, kHeight, {0, 128, 128}));
  for (int i = 1; i <= 12; ++i)
    add_faded(video, 1, i, 1 - i / 12.0);
  add_shot(video, 1, 60);
  for (int i = 1; i <= 12; ++i)
    add_faded(video, 1, 60 + i, i / 12.0);
  for (int i = 0; i < 20; ++i)
    video.push_back(drawing::plain(kWidth, kHeight, {0, 128, 128}));
  ShotDetector detector;
  FrameFeatures features;
  for (const Frame& frame : video) {
    compute_features(frame, features);
    detector.push(features);
  }
  detector.finish();
  const auto changes = detector.take();
  INFO(text_of(changes));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].type == ChangeType::fade);
  CHECK(changes[0].end == 0);
  CHECK(std::abs(changes[0].begin - 20) <= 1);
  REQUIRE(detector.open_fade());
  CHECK(std::abs(*detector.open_fade() - 103) <= 1);
}

TEST_CASE("a dissolve is found in its middle, however long, and so is one between moving shots") {
  for (const int length : {6, 12, 25, 50}) {
    for (const double speed : {0.0, 0.3}) {
      Video video;
      add_shot(video, 1, 50, speed);
      const Texture a(1), b(2);
      for (int i = 1; i <= length; ++i)
        video.push_back(drawn([&](int x, int y) {
          return drawing::mix(a.at(x + speed * (50 + i), y + 0.2 * (50 + i)),
                              b.at(x + speed * i, y + 0.2 * i), i / (length + 1.0));
        }));
      for (int i = length; i < 90; ++i)
        video.push_back(drawn(b.shifted(speed * i, 0.2 * i)));
      const auto changes = detect(video);
      INFO("length " << length << ", speed " << speed << ": " << text_of(changes));
      REQUIRE(changes.size() == 1);
      CHECK(changes[0].type == ChangeType::dissolve);
      CHECK(std::abs(changes[0].frame - (50 + length / 2)) <= 1 + length / 6);
      CHECK(changes[0].end < changes[0].frame);
      CHECK(changes[0].begin >= changes[0].frame);
      CHECK(detect(video, {.gradual = false}).empty());
    }
  }
}

TEST_CASE("a dissolve between shots in which all moves fast is found by mean and variance") {
  for (const int length : {14, 30}) {
    const Texture a(1, 3), b(2, 3, {70, 40, 110});
    Video video;
    for (int i = 0; i < 150; ++i) {
      const double share = std::clamp((i - 59) / (length + 1.0), 0.0, 1.0);
      video.push_back(drawn([&](int x, int y) {
        return drawing::mix(a.at(x + 17 * i, y + 11 * i), b.at(x - 13 * i, y + 19 * i), share);
      }));
    }
    const auto changes = detect(video);
    INFO("length " << length << ": " << text_of(changes));
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].type == ChangeType::dissolve);
    CHECK(std::abs(changes[0].frame - (60 + length / 2)) <= 1 + length / 6);
  }
}

TEST_CASE("a cut blended over one frame is one cut") {
  Video video;
  add_shot(video, 1, 30);
  const Texture a(1), b(2);
  video.push_back(
      drawn([&](int x, int y) { return drawing::mix(a.at(x + 12, y), b.at(x, y), 0.5); }));
  add_shot(video, 2, 30);
  const auto changes = detect(video);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].type == ChangeType::cut);
  CHECK(std::abs(changes[0].frame - 31) <= 1);
}

TEST_CASE("a short shot between two of one scene is there, also if its cuts are blended") {
  const Texture a(1), b(2);
  const auto show = [&](int i, double share) {
    return drawn([&](int x, int y) {
      return drawing::mix(a.at(x + 0.1 * i, y), b.at(x + 0.1 * i, y), share);
    });
  };
  Video video;
  for (int i = 0; i < 140; ++i)
    video.push_back(show(i, i == 40 || i == 57 ? 0.5 : i > 40 && i < 57 ? 1 : 0));
  const auto changes = detect(video);
  INFO(text_of(changes));
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].type == ChangeType::cut);
  CHECK(std::abs(changes[0].frame - 41) <= 1);
  CHECK(changes[1].type == ChangeType::cut);
  CHECK(std::abs(changes[1].frame - 58) <= 1);
}

TEST_CASE("a cut to black is a cut, and the fade from there a second change") {
  Video video;
  add_shot(video, 1, 40);
  add_shot(video, 3, 20, 0.4, {80, 20, 90});
  for (int i = 0; i < 16; ++i)
    video.push_back(drawing::plain(kWidth, kHeight, {0, 128, 128}));
  for (int i = 1; i <= 12; ++i)
    add_faded(video, 2, i, 1 - i / 12.0);
  add_shot(video, 2, 60);
  const auto changes = detect(video);
  INFO(text_of(changes));
  REQUIRE(frames_of(changes).size() == 3);
  CHECK(changes[1].type == ChangeType::cut);
  CHECK(changes[1].frame == 60);
  CHECK(changes[1].begin == 60);
  CHECK(changes[2].type == ChangeType::fade);
  CHECK(changes[2].end == 60);
  CHECK(std::abs(changes[2].begin - 76) <= 1);
}

TEST_CASE(
    "a few frames of black or a flash of a colour part two shots, more of a colour are a shot") {
  for (const Yuv colour : {Yuv{0}, Yuv{240}, Yuv{90, 140, 110}}) {
    for (const int hold : {2, 4, 7, 12, 20}) {
      Video video;
      add_shot(video, 1, 40);
      for (int i = 0; i < hold; ++i)
        video.push_back(drawing::plain(kWidth, kHeight, colour));
      add_shot(video, 2, 60);
      INFO("colour " << colour.y << ", hold " << hold);
      const bool shot = hold > (colour.y > 0 ? 4 : 12);
      CHECK(frames_of(detect(video)) == (shot ? Frames{40, 40 + hold} : Frames{40 + hold}));
    }
  }
}

TEST_CASE("a plain shot fades to black and from it, and is cut to it") {
  const Yuv ground{230, 120, 140}, black{0};
  const auto faded = [&](Video& video, int frames, bool in) {
    for (int i = 0; i < frames; ++i) {
      const double share = (i + 1) / (frames + 1.0);
      const Yuv colour = drawing::mix(ground, black, in ? 1 - share : share);
      video.push_back(drawing::plain(kWidth, kHeight, colour));
    }
  };
  const auto still = [](Video& video, int frames, Yuv colour) {
    for (int i = 0; i < frames; ++i)
      video.push_back(drawing::plain(kWidth, kHeight, colour));
  };
  for (const int ramp : {6, 12, 24}) {
    Video from, to, cut;
    for (int i = 0; i <= 52; ++i)
      add_faded(from, 1, i, std::max(0, i - 40) / 12.0);
    faded(from, ramp, true);
    still(from, 50, ground);
    add_shot(from, 2, 40);
    auto changes = detect(from);
    INFO("ramp " << ramp << ": " << text_of(changes));
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].type == ChangeType::fade);
    CHECK(std::abs(changes[0].frame - 53) <= 2);
    CHECK(std::abs(changes[0].end - 51) <= 1);
    CHECK(changes[1].type == ChangeType::cut);
    CHECK(changes[1].frame == 103 + ramp);

    add_shot(to, 1, 40);
    still(to, 50, ground);
    faded(to, ramp, false);
    still(to, 4, black);
    add_shot(to, 2, 60);
    changes = detect(to);
    INFO(text_of(changes));
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].type == ChangeType::cut);
    CHECK(changes[0].frame == 40);
    CHECK(changes[1].type == ChangeType::fade);
    CHECK(changes[1].frame == 94 + ramp);
    CHECK(changes[1].end >= 90);

    add_shot(cut, 1, 40);
    still(cut, 30, ground);
    still(cut, 16, black);
    for (int i = 1; i <= ramp; ++i)
      add_faded(cut, 2, i, 1 - i / (ramp + 1.0));
    add_shot(cut, 2, 60);
    changes = detect(cut);
    INFO(text_of(changes));
    REQUIRE(changes.size() == 3);
    CHECK(changes[0].frame == 40);
    CHECK(changes[1].type == ChangeType::cut);
    CHECK(changes[1].frame == 70);
    CHECK(changes[2].type == ChangeType::fade);
    CHECK(std::abs(changes[2].frame - 86) <= 2);
  }
}

TEST_CASE("a fog fades to black and from it, a dim wall that flickers is one shot") {
  const Texture fog(6, 20), scene(2);
  for (const int ramp : {6, 16}) {
    Video video;
    for (int i = 0; i < 140; ++i)
      video.push_back(drawn([&](int x, int y) {
        const double light = i < 70 ? (70.0 - i) / ramp : (i - 75.0) / ramp;
        const Texture& shot = i < 70 ? fog : scene;
        return drawing::mix({0}, drawing::mix({150}, shot.at(x + 0.2 * i, y), 0.15),
                            std::clamp(light, 0.0, 1.0));
      }));
    const auto changes = detect(video);
    INFO("ramp " << ramp << ": " << text_of(changes));
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].type == ChangeType::fade);
    CHECK(changes[0].frame >= 75);
    CHECK(changes[0].frame <= 75 + ramp);
  }
  Video wall;
  for (int i = 0; i < 120; ++i)
    wall.push_back(drawing::plain(kWidth, kHeight, {15.5 + 4 * std::sin(i), 126, 130}));
  CHECK(text_of(detect(wall)) == "");
}

TEST_CASE("a dark scene whose contrast ebbs and that is cut to white does not fade to it") {
  Video video;
  const Texture scene(3);
  for (int i = 0; i < 50; ++i)
    video.push_back(drawn(
        [&](int x, int y) { return drawing::mix({10}, scene.at(x, y), std::pow(0.962, i)); }));
  for (int i = 0; i < 40; ++i)
    video.push_back(drawing::plain(kWidth, kHeight, {250}));
  add_shot(video, 2, 60);
  const auto changes = detect(video);
  INFO(text_of(changes));
  CHECK(frames_of(changes) == Frames{50, 90});
}

TEST_CASE("black that is long after a cut is a shot, and what fades in from it is one change") {
  Video video;
  add_shot(video, 1, 60, 0.4, {80, 20, 90});
  for (int i = 0; i < 100; ++i)
    video.push_back(drawing::plain(kWidth, kHeight, {0, 128, 128}));
  for (int i = 1; i <= 5; ++i)
    add_faded(video, 2, i, 1 - i / 5.0);
  add_shot(video, 2, 60);
  const auto changes = detect(video);
  INFO(text_of(changes));
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].type == ChangeType::cut);
  CHECK(changes[0].frame == 60);
  CHECK(changes[1].type == ChangeType::fade);
  CHECK(changes[1].end == changes[1].begin);
  CHECK(std::abs(changes[1].begin - 160) <= 1);
}

TEST_CASE("an explosion that clears is no cut, nor is one that a cut ends a change before") {
  const Texture scene(1), fire(5, 30, {150, 40, 150});
  const auto shown = [&](int i, double share) {
    return drawn([&](int x, int y) {
      return drawing::mix(scene.at(x + 0.2 * i, y), fire.at(x + 5.0 * i, y), share);
    });
  };
  Video clears;
  for (int i = 0; i < 110; ++i)
    clears.push_back(shown(i, i < 50 ? 0 : 0.95 * std::pow(0.85, std::max(0, i - 60))));
  CHECK(text_of(detect(clears)) == "");
  // The same fire, but another scene comes out of it.
  Video parts(clears.begin(), clears.begin() + 50);
  const Texture other(2, 12, {20, 100, 60});
  for (int i = 50; i < 62; ++i)
    parts.push_back(drawn(fire.shifted(5.0 * i, 0)));
  for (int i = 62; i < 120; ++i)
    parts.push_back(drawn(other.shifted(0.2 * i, 0)));
  CHECK(frames_of(detect(parts)) == Frames{50, 62});
}

TEST_CASE("a ground of one colour that explosions light is one shot") {
  const Texture fire(5, 40, {150, 60, 150});
  Video video;
  for (int i = 0; i < 130; ++i) {
    const int since = i % 40 - 20;
    const double share = since < 0 || since >= 20 || i >= 120 ? 0 : 0.95 * std::pow(0.8, since);
    video.push_back(drawn([&](int x, int y) {
      return drawing::mix({190, 118, 136}, fire.at(x + 2.0 * i, y), share);
    }));
  }
  CHECK(text_of(detect(video)) == "");
}

TEST_CASE("a title before a plain ground is no cut if the ground is back soon, nor a fade") {
  const auto show = [](int stays, Yuv ground) {
    Video video;
    for (int i = 0; i < 140; ++i) {
      const bool bar = i >= 40 && i < 40 + stays;
      video.push_back(drawn([=](int x, int y) {
        return bar && x >= 6 && x < 84 && y >= 46 && y < 58 ? Yuv{90, 160, 100} : ground;
      }));
    }
    return video;
  };
  CHECK(text_of(detect(show(20, {210, 120, 132}))) == "");
  CHECK(frames_of(detect(show(50, {210, 120, 132}))) == Frames{40, 90});
  CHECK(frames_of(detect(show(20, {0}))) == Frames{40, 60});  // cards between black
  Video enters;
  for (int i = 0; i < 100; ++i)
    enters.push_back(drawn([=](int x, int y) {
      return std::hypot(x - kWidth - 12 + 0.5 * std::clamp(i - 30, 0, 40), y - 8) < 12
                 ? Yuv{235}
                 : Yuv{90, 136, 120};
    }));
  CHECK(text_of(detect(enters)) == "");
}

TEST_CASE("a corner of something that goes, and another that comes, cut nothing") {
  Video video;
  for (int i = 0; i < 80; ++i)
    video.push_back(drawn([=](int x, int y) {
      const bool corner = i < 35 ? x + y < 9 : i >= 43 && (kWidth - x) + y < 9;
      return corner ? Yuv{0} : Yuv{240};
    }));
  CHECK(text_of(detect(video)) == "");
}

TEST_CASE("colours that turn while something flashes are no dissolve") {
  for (const double speed : {0.015, 0.02}) {
    for (const double soft : {25, 40}) {
      Video video;
      for (int i = 0; i < 160; ++i) {
        const double a = speed * i, light = i % 30 == 20 ? 0.8 : 0;
        video.push_back(drawn([=](int x, int y) {
          const double way = std::tanh(((x - 48) * std::cos(a) + y * std::sin(a)) / soft);
          return drawing::mix({110 + 30 * way, 128 - 50 * way, 128 + 30 * way}, {235}, light);
        }));
      }
      CHECK(text_of(detect(video)) == "");
    }
  }
}

TEST_CASE("a camera that swings over something soft is no cut") {
  const Texture scene(4, 70);
  const double steps[] = {0.05, 0.15, 0.28, 0.36, 0.36, 0.28, 0.15, 0.05};
  Video swings, jumps;
  double at = 0;
  for (int i = 0; i < 80; ++i) {
    if (i >= 30 && i < 38) at += kWidth * steps[i - 30];
    swings.push_back(drawn(scene.shifted(at, 0)));
    jumps.push_back(drawn(scene.shifted(i < 40 ? 0 : 1.5 * kWidth, 0)));
  }
  CHECK(text_of(detect(swings)) == "");
  CHECK(frames_of(detect(jumps)) == Frames{40});
}

TEST_CASE("a flash in two parts is no cut") {
  const Texture scene(7, 4);
  Video video;
  for (int i = 0; i < 90; ++i) {
    const double light = i == 40 || i == 42 ? 0.98 : i == 41 ? 0.6 : 0;
    video.push_back(
        drawn([&](int x, int y) { return drawing::mix(scene.at(x, y + 11 * i), {235}, light); }));
  }
  CHECK(text_of(detect(video)) == "");
}

TEST_CASE("a pan over a sky of little contrast is no dissolve, a mixture of two skies is one") {
  constexpr double kContrast = 0.35;
  const auto sky = [](const Texture& clouds, double x, double y) {
    const Yuv c = clouds.at(x, y);
    return Yuv{80 + kContrast * c.y, 150 + kContrast * c.u, 100 + kContrast * c.v};
  };
  for (const std::uint64_t seed : {9, 11, 13}) {
    const Texture clouds(seed, 90, {0, 0, 0}), others(seed + 100, 90, {0, 0, 0});
    Video pan, dissolve;
    for (int i = 0; i < 90; ++i) {
      const double along = 1.5 * i, down = 0.3 * along;
      pan.push_back(drawn([&](int x, int y) { return sky(clouds, x + along, y + down); }));
      const double share = std::clamp((i - 35) / 21.0, 0.0, 1.0);
      dissolve.push_back(drawn([&](int x, int y) {
        return drawing::mix(sky(clouds, x + 0.2 * i, y), sky(others, x + 0.2 * i, y), share);
      }));
    }
    INFO("seed " << seed);
    CHECK(text_of(detect(pan)) == "");
    const auto changes = detect(dissolve);
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].type == ChangeType::dissolve);
  }
}

TEST_CASE("a camera that comes from a grainy wall to something bright is no wipe") {
  // The bright part differs most; but where an edge would have passed, the wall is as it was.
  std::vector<float> grains(400 * 64);
  vfm::Random(3, vfm::Purpose::test).fill_uniform(grains);
  for (const double grain : {10, 20}) {
    Video video;
    for (int i = 0; i < 90; ++i)
      video.push_back(drawn([&](int x, int y) {
        const int at = static_cast<int>(std::lround(x + 0.7 * i));
        if (at > 140) return Yuv{250, 128, 128};
        const double light = 90 + grain * grains[static_cast<std::size_t>(400 * y + at)];
        return Yuv{light, 150 + 0.2 * at, 180 - 0.2 * at};
      }));
    CHECK(text_of(detect(video)) == "");
  }
}

TEST_CASE("grain that moves by a pixel after a while is no cut, another wall is") {
  std::vector<float> grains(400 * 64);
  vfm::Random(3, vfm::Purpose::test).fill_uniform(grains);
  const auto add = [&](Video& video, std::uint64_t seed, int shift) {
    const Texture wall(seed, 40, {0, 0, 0});
    const Frame frame = drawn([&](int x, int y) {
      const Yuv c = wall.at(x + shift, y);
      const double grain = 40 * grains[static_cast<std::size_t>(400 * y + x + shift)];
      return Yuv{90 + 0.1 * c.y + grain, 128 + 0.1 * c.u, 128 + 0.1 * c.v};
    });
    video.insert(video.end(), 30, frame);
  };
  Video zoom, cut;
  for (const int shift : {0, 1, 3})
    add(zoom, 1, shift);
  add(cut, 1, 0);
  add(cut, 2, 200);
  CHECK(text_of(detect(zoom)) == "");
  CHECK(frames_of(detect(cut)) == Frames{30});
}

TEST_CASE(
    "an explosion over a scene that moves on, or is another picture in each frame, is no cut") {
  const Texture scene(1, 8), fire(5, 60, {150, 40, 150});
  const Texture ground(6, 12);
  Video moves, restless;
  for (int i = 0; i < 110; ++i) {
    const double share = i < 50 ? 0 : i < 53 ? 0.5 + 0.22 * (i - 50) : 0.95 * std::pow(0.8, i - 52);
    const double left = share < 0.03 ? 0 : share;
    // By the time that it has cleared, hardly anything is where it was.
    moves.push_back(drawn([&](int x, int y) {
      return drawing::mix(scene.at(x + 1.5 * i, y), fire.at(x + 3.0 * i, y), left);
    }));
    const Texture snow(2000 + static_cast<std::uint64_t>(i), 5);
    restless.push_back(drawn([&](int x, int y) {
      return drawing::mix(drawing::mix(ground.at(x, y), snow.at(x, y), 0.8),
                          fire.at(x + 3.0 * i, y), left);
    }));
  }
  CHECK(text_of(detect(moves)) == "");
  CHECK(text_of(detect(restless)) == "");
}

TEST_CASE("a title that comes and goes over a soft ground is no cut, another page is one") {
  const Texture ground(3, 60);
  const auto show = [&](double light, bool bar, std::uint64_t page) {
    const Texture text(page, 3);
    return drawn([&, light, bar, page](int x, int y) {
      Yuv c = ground.at(x, y);
      c = {light + 0.08 * c.y, 120, 132};
      if (bar && x >= 6 && x < 84 && y >= 46 && y < 58) return Yuv{30, 160, 100};
      if (page && x >= 10 && x < 86 && y >= 6 && y < 58 && text.at(x, y).y > 130) return Yuv{20};
      return c;
    });
  };
  for (const double light : {30.0, 190.0}) {
    Video titles;
    for (int i = 0; i < 120; ++i)
      titles.push_back(show(light, i % 40 >= 15 && i % 40 < 35, 0));
    CHECK(text_of(detect(titles)) == "");
  }
  Video pages;
  for (int i = 0; i < 60; ++i)
    pages.push_back(show(190, false, i < 30 ? 7 : 8));
  CHECK(frames_of(detect(pages)) == Frames{30});
}

TEST_CASE("a camera that swings fast is no cut, one that looks elsewhere at once is") {
  const Texture scene(4, 9);
  // Widths of the picture that it turns in a frame, the fastest beyond what motion is looked for.
  const double steps[] = {0.02, 0.06, 0.1, 0.12, 0.38, 0.12, 0.1, 0.06, 0.02};
  Video swings, jumps;
  double at = 0;
  for (int i = 0; i < 80; ++i) {
    if (i >= 30 && i < 39) at += kWidth * steps[i - 30];
    swings.push_back(drawn(scene.shifted(at, 0)));
    jumps.push_back(drawn(scene.shifted(i < 40 ? 0 : 0.38 * kWidth, 0)));
  }
  CHECK(text_of(detect(swings)) == "");
  CHECK(frames_of(detect(jumps)) == Frames{40});
}

TEST_CASE("a wipe is one change, whichever way it goes and however fast") {
  for (const WipeWay way : {WipeWay::right, WipeWay::left, WipeWay::down, WipeWay::up}) {
    for (const int length : {8, 14, 30}) {
      Video video;
      add_shot(video, 1, 50, 0.2);
      const Texture a(1), b(2);
      for (int i = 1; i <= length; ++i) {
        const double share = i / (length + 1.0);
        video.push_back(drawn([&](int x, int y) {
          const double along = way == WipeWay::right  ? x / double{kWidth}
                               : way == WipeWay::left ? 1 - x / double{kWidth}
                               : way == WipeWay::down ? y / double{kHeight}
                                                      : 1 - y / double{kHeight};
          return along < share ? b.at(x + 0.2 * i, y)
                               : a.at(x + 0.2 * (50 + i), y + 0.2 * (50 + i));
        }));
      }
      for (int i = length + 1; i < 90; ++i)
        video.push_back(drawn(b.shifted(0.2 * i, 0)));
      const auto changes = detect(video);
      INFO("way " << static_cast<int>(way) << ", length " << length << ": " << text_of(changes));
      REQUIRE(changes.size() == 1);
      CHECK(changes[0].type == ChangeType::wipe);
      CHECK(std::abs(changes[0].frame - (50 + length / 2)) <= 1 + length / 5);
      CHECK(detect(video, {.gradual = false}).empty());
      // One that is clean is found however strict.
      if (length == 14) CHECK(frames_of(detect(video, {.strictness = 2})) == frames_of(changes));
    }
  }
}

TEST_CASE("a wipe from one soft picture to another is found") {
  const Texture before(5, 70, {10, 130, 60}), after(9, 70, {70, 60, 130});
  for (const int length : {9, 14, 30}) {
    Video video;
    for (int i = 0; i < 120; ++i) {
      const double edge = std::clamp((i - 49) / (length + 1.0), 0.0, 1.0) * kWidth;
      video.push_back(drawn([&](int x, int y) {
        return x < edge ? after.at(x + 0.1 * i, y) : before.at(x + 0.1 * i, y);
      }));
    }
    const auto changes = detect(video);
    INFO(length << ": " << text_of(changes));
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].type == ChangeType::wipe);
    CHECK(std::abs(changes[0].frame - (50 + length / 2)) <= 1 + length / 5);
  }
}

TEST_CASE("a camera that swings from a dark wall to a light one is no wipe") {
  const Texture texture(4, 10);
  Video video;
  for (int i = 0; i < 100; ++i) {
    const double at = std::clamp(i - 40, 0, 12) / 12.0 * 1.2 * kWidth;
    video.push_back(drawn([&](int x, int y) {
      Yuv c = texture.at(x + at, y);
      c.y = 0.3 * c.y + (x + at > 1.1 * kWidth ? 150 : 10);
      c.u = x + at > 1.1 * kWidth ? 90 : 160;
      return c;
    }));
  }
  for (const ShotChange& change : detect(video))
    CHECK(change.type != ChangeType::wipe);
}

TEST_CASE("bars that only one of two shots has do not hide a dissolve") {
  const Texture wide(11), full(12);
  for (const int length : {4, 8, 24}) {
    Video video;
    for (int i = 0; i < 120; ++i)
      video.push_back(drawn([&](int x, int y) {
        const bool bar = y < 9 || y >= kHeight - 9;
        return drawing::mix(bar ? Yuv{0} : wide.at(x + 0.3 * i, y), full.at(x - 0.3 * i, y),
                            std::clamp((i - 50) / static_cast<double>(length), 0.0, 1.0));
      }));
    const auto changes = detect(video);
    INFO(text_of(changes));
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].type == ChangeType::dissolve);
    CHECK(std::abs(changes[0].frame - 50 - length / 2) <= 2);
  }
}

TEST_CASE("black bars do not hide a cut") {
  // A wide film in a tall picture: three quarters are bars. The two shots are dim.
  Video video;
  const auto add = [&](std::uint64_t seed) {
    const Texture texture(seed);
    for (int i = 0; i < 30; ++i)
      video.push_back(drawn([&](int x, int y) {
        if (y < 20 || y >= 44) return Yuv{0};
        Yuv c = texture.at(x + 0.3 * i, y);
        c.y *= 0.4;
        return c;
      }));
  };
  add(11);
  add(12);
  CHECK(frames_of(detect(video)) == Frames{30});
}
