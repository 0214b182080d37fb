// Windows, runs and what is in which shot, against the public predictions_to_scenes
// (scripts/golden/transnet.py).
// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/window_detector.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::curate;

namespace {

constexpr std::size_t kBytes = std::size_t{3} * kChangeWidth * kChangeHeight;
using PublicScene = std::pair<std::int64_t, std::int64_t>;  // half open

std::vector<std::uint8_t> plain_frame(std::uint8_t value) {
  return std::vector<std::uint8_t>(kBytes, value);
}

/// A frame of value 1 is above the threshold.
std::vector<float> answer(std::span<const std::uint8_t> frames) {
  std::vector<float> answers;
  for (std::size_t i = 0; i < frames.size(); i += kBytes)
    answers.push_back(frames[i] == 1 ? 0.75f : 0.5f);
  return answers;
}

/// What a detector makes of a video, as scenes.
std::vector<PublicScene> scenes_of(const std::string& above) {
  WindowDetector detector(answer, 0.5);
  std::vector<ShotChange> changes;
  std::vector<PublicScene> given_up;  // frames that open_change() says are in no shot
  const auto frames = static_cast<std::int64_t>(above.size());
  std::int64_t settled = 0, known = 0;
  const auto take = [&](std::int64_t pushed) {
    for (const ShotChange& change : detector.take()) {
      // Nothing that was settled is touched, unless it was given up.
      const bool gone = !given_up.empty() && given_up.back().first == change.end;
      CHECK((change.end >= settled || gone));
      CHECK(change.frame >= std::max<std::int64_t>(0, pushed - 2 * kShotLag));
      CHECK(change.frame >= change.end);
      CHECK(change.frame <= change.begin);
      CHECK(change.score == 0.75f);
      CHECK((change.type == ChangeType::cut) == (change.begin == change.end));
      changes.push_back(change);
    }
    CHECK(detector.settled() >= settled);
    CHECK(detector.settled() >= pushed - kShotLag);
    settled = detector.settled();
    if (const auto open = detector.open_change()) given_up.push_back({*open, 0});
    known = pushed;
  };
  for (const char bit : above) {
    detector.push(plain_frame(bit == '1'));
    take(known + 1);
  }
  detector.finish();
  take(frames);
  CHECK(settled == frames);
  std::vector<PublicScene> scenes;
  std::int64_t begin = 0;
  for (const ShotChange& change : changes) {
    if (change.end > 0) scenes.push_back({begin, change.end});
    begin = change.begin;
  }
  if (begin < frames) scenes.push_back({begin, frames});
  return scenes;
}

}  // namespace

TEST_CASE("shots are the public module's scenes") {
  std::ifstream file(std::string(VFM_GOLDEN) + "/transnet/scenes.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json cases = parse_json(text, "scenes.json");
  CHECK(cases.size() > 30);
  for (const Json& one : cases) {
    const std::string above = one.at("above");
    INFO(above);
    std::vector<PublicScene> expected;
    for (const Json& scene : one.at("scenes"))
      expected.push_back({scene.at(0), scene.at(1).get<std::int64_t>() + 1});
    CHECK(scenes_of(above) == expected);
  }
}

TEST_CASE("each frame is judged once, with 25 to 74 before it, the ends repeated") {
  const int frames = GENERATE(1, 24, 50, 51, 75, 100, 149, 150, 201);
  INFO(frames);
  std::vector<std::uint8_t> asked;  // the first byte of each frame that a window's answer is for
  int windows = 0;
  WindowDetector detector(
      [&](std::span<const std::uint8_t> window) {
        CHECK(window.size() == 100 * kBytes);
        for (int i = 0; i < 100; ++i) {
          const int frame = std::clamp(50 * windows - 25 + i, 0, frames - 1);
          CHECK(window[static_cast<std::size_t>(i) * kBytes] == frame);
        }
        ++windows;
        return std::vector<float>(100);
      },
      0.5);
  for (int i = 0; i < frames; ++i) {
    detector.push(plain_frame(static_cast<std::uint8_t>(i)));
    CHECK(windows == std::max(0, (i + 1 - 25) / 50));
  }
  detector.finish();
  CHECK(windows == (frames + 49) / 50);
  CHECK(detector.take().empty());
}

TEST_CASE("the time of a change is behind its middle, and near its end if it is long") {
  const auto only = [](const std::string& above) {
    WindowDetector detector(answer, 0.5);
    for (const char bit : above)
      detector.push(plain_frame(bit == '1'));
    detector.finish();
    const std::vector<ShotChange> changes = detector.take();
    REQUIRE(changes.size() == 1);
    return changes[0];
  };
  const std::string before(30, '0');
  CHECK(only(before + "1000").frame == 31);
  CHECK(only(before + "11000").frame == 31);
  CHECK(only(before + "1111111000").frame == 34);
  CHECK(only(before + std::string(90, '1') + "000").frame == 120 - WindowDetector::kHeld);
}

TEST_CASE("a long change lets its frames go, and a network's nonsense is an error") {
  WindowDetector detector(answer, 0.5);
  for (int i = 0; i < 30 + 150; ++i)
    detector.push(plain_frame(i >= 30));
  CHECK(detector.open_change() == std::int64_t{31});
  CHECK(detector.settled() == 150);
  WindowDetector all(answer, 0.5);
  for (int i = 0; i < 200; ++i)
    all.push(plain_frame(1));
  CHECK(all.open_change() == std::int64_t{0});
  WindowDetector wrong([](auto) { return std::vector<float>(99); }, 0.5);
  CHECK_THROWS_AS(wrong.push(std::vector<std::uint8_t>(7)), Error);
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100; ++i)
          wrong.push(plain_frame(0));
      }(),
      Error);
  WindowDetector nothing(answer, 0.5);
  nothing.finish();
  CHECK(nothing.take().empty());
}

TEST_CASE("each frame but the first is judged by the answer for the one before it") {
  const std::string video = std::string(60, '.') + "x" + std::string(70, '.') + "x";
  const auto judged = [&](bool explain) {
    WindowDetector detector(answer, 0.5, explain);
    for (const char frame : video)
      detector.push(plain_frame(frame == 'x' ? 1 : 0));
    detector.finish();
    return detector.take_judgements();
  };
  CHECK(judged(false).empty());
  const std::vector<Judgement> judgements = judged(true);
  REQUIRE(judgements.size() == video.size() - 1);
  for (std::size_t i = 0; i < judgements.size(); ++i) {
    CHECK(judgements[i].frame == static_cast<std::int64_t>(i + 1));
    CHECK(judgements[i].score == (i == 60 ? 0.75F : 0.5F));
    CHECK((judgements[i].verdict == Judgement::Verdict::cut) == (i == 60));
  }
}
