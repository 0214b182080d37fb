// Which frames stand for a clip, and how their vectors become one.
// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/clip_vector.h"

#include <catch2/catch.hpp>
#include <utility>

#include "base/json.h"
#include "columns/clip_frames.h"
#include "columns/embed/clip_windows.h"
#include "support/distance.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// Likes five frames together; a frame's vector is the frame. Remembers its packs.
class FivesEncoder final : public models::PictureEncoder {
 public:
  int dim() const override { return 2; }
  std::vector<float> prepare(const models::PictureView&) const override { return {}; }
  std::vector<std::vector<float>> encode_prepared(
      std::span<const std::vector<float>> prepared) const override {
    if (!prepared.empty()) calls.push_back(prepared.size());
    return {prepared.begin(), prepared.end()};
  }
  std::size_t together() const override { return 5; }
  Json config() const override { return Json::object(); }

  mutable std::vector<std::size_t> calls;
};

/// Makes one vector of four frames: their numbers.
class FoursEncoder final : public models::PictureEncoder {
 public:
  int dim() const override { return 4; }
  int frames() const override { return 4; }
  std::vector<float> prepare(const models::PictureView&) const override { return {}; }
  std::vector<std::vector<float>> encode_prepared(
      std::span<const std::vector<float>> prepared) const override {
    if (!prepared.empty()) calls.push_back(prepared.size());
    return {prepared.begin(), prepared.end()};
  }
  std::size_t together() const override { return 2; }
  Json config() const override { return Json::object(); }

  mutable std::vector<std::size_t> calls;
};

std::vector<float> direction_of(std::vector<float> vector) {
  models::normalise(vector);
  return vector;
}

/// The mean of vectors of two numbers that are first brought to length 1, itself so.
std::vector<float> mean_direction(std::vector<std::vector<float>> vectors) {
  std::vector<float> sum(2);
  for (std::vector<float>& vector : vectors) {
    models::normalise(vector);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += vector[i];
  }
  models::normalise(sum);
  return sum;
}

}  // namespace

TEST_CASE("the frames of a clip are the middles of equal parts, each once") {
  using Frames = std::vector<std::int64_t>;
  CHECK(plan_clip_frames(16, 8) == Frames{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(plan_clip_frames(100, 4) == Frames{12, 37, 62, 87});
  CHECK(plan_clip_frames(100, 1) == Frames{50});
  CHECK(plan_clip_frames(8, 8) == Frames{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(plan_clip_frames(3, 8) == Frames{0, 1, 2});
  CHECK(plan_clip_frames(1, 8) == Frames{0});
  // What a container promises may be anything.
  const std::int64_t far = std::int64_t{1} << 62;
  CHECK(plan_clip_frames(far, 64).back() == far - far / 128);
}

TEST_CASE("vectors weigh the same in their mean, whatever their length") {
  const FivesEncoder encoder;
  ClipVectors clips(encoder);
  clips.push({{3, 0}, {0, 100}});
  clips.push({{3, 0}, {0, 0}});
  clips.push({});
  const std::vector<ClipVector> got = clips.take(true);
  REQUIRE(got.size() == 3);
  CHECK(largest_difference(got[0].vector, std::vector<float>{0.70710678f, 0.70710678f}) < 1e-6);
  CHECK(largest_difference(got[1].vector, std::vector<float>{1, 0}) < 1e-6);
  CHECK(got[2].vector == std::vector<float>(2));
}

TEST_CASE("frames of several clips fill the packs of an encoder, and each clip gets its own mean") {
  const FivesEncoder encoder;
  ClipVectors clips(encoder);
  std::vector<std::vector<float>> expected, got;
  std::vector<std::size_t> there;  // after each clip
  float number = 0;
  for (const int frames : {3, 8, 0, 1, 4, 5, 2}) {
    std::vector<std::vector<float>> some;
    for (int i = 0; i < frames; ++i)
      some.push_back({1, ++number});
    expected.push_back(mean_direction(some));
    clips.push(std::move(some));
    for (ClipVector& clip : clips.take(false))
      got.push_back(std::move(clip.vector));
    there.push_back(got.size());
  }
  // Of 3, 11, 11, 12, 16, 21 and 23 frames those that fill packs.
  CHECK(encoder.calls == std::vector<std::size_t>{10, 5, 5});
  CHECK(there == std::vector<std::size_t>{0, 1, 1, 1, 4, 5, 5});
  for (ClipVector& clip : clips.take(true))
    got.push_back(std::move(clip.vector));
  CHECK(encoder.calls == std::vector<std::size_t>{10, 5, 5, 3});
  CHECK(got == expected);
  CHECK(clips.take(true).empty());
}

TEST_CASE("windows are equal parts of a clip, none longer than asked for, and not too many") {
  CHECK(count_clip_windows(1, 25, 5) == 1);
  CHECK(count_clip_windows(125, 25, 5) == 1);
  CHECK(count_clip_windows(126, 25, 5) == 2);
  CHECK(count_clip_windows(250, 25, 5) == 2);
  CHECK(count_clip_windows(150, 29.97, 5.005) == 1);
  CHECK(count_clip_windows(3, 1, 0.1) == 3);
  CHECK(count_clip_windows(std::int64_t{1} << 40, 25, 0.1) == kMostClipWindows);
  using Plan = std::vector<WindowFrame>;
  CHECK(plan_window_frames(16, 1, 8).size() == 8);
  CHECK(plan_window_frames(9, 2, 2) == Plan{{1, 0}, {3, 0}, {5, 1}, {7, 1}});
  CHECK(plan_window_frames(3, 3, 8) == Plan{{0, 0}, {1, 1}, {2, 2}});
  const std::int64_t far = std::int64_t{1} << 62;
  CHECK(plan_window_frames(far, 1024, 2).back() == WindowFrame{far - far / 4096, 1023});
}

TEST_CASE("frames that come one by one are encoded in full packs, and void ones count nowhere") {
  const FivesEncoder encoder;
  ClipVectors clips(encoder, [](std::span<const float> frame) { return 10.0 * frame[0]; });
  const std::vector<std::vector<float>> frames{{1, 2}, {3, 4}, {0, 6}, {7, 8},
                                               {9, 1}, {2, 2}, {5, 3}};
  clips.push({{1, 1}});
  clips.begin(2, 1);  // a container that promised too much
  clips.add({9, 9}, true, 0);
  clips.begin(3, 2);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    clips.add(frames[i], i % 3 == 0, i == 3 ? std::nullopt : std::optional<std::size_t>(i / 4));
    CHECK(clips.take(false).size() == (i == 2 ? 1 : 0));
  }
  CHECK(encoder.calls == std::vector<std::size_t>{5});
  clips.end();
  clips.begin(8, 8);
  clips.add({1, 0}, true, 1);
  clips.drop();  // a clip that cannot be decoded
  clips.push({{4, 4}});
  const std::vector<ClipVector> got = clips.take(true);
  REQUIRE(got.size() == 2);
  CHECK(got[0].vector == mean_direction({frames[0], frames[3], frames[6]}));
  CHECK(got[0].frames == 3);
  REQUIRE(got[0].windows.size() == 2);
  CHECK(got[0].windows[0] == mean_direction({frames[0], frames[1], frames[2]}));
  CHECK(got[0].windows[1] == mean_direction({frames[4], frames[5], frames[6]}));
  CHECK(got[1].vector == mean_direction({{4, 4}}));
  CHECK(got[1].windows.empty());
}

TEST_CASE(
    "an encoder of videos gets all frames of a clip in order, those of short clips repeated") {
  const FoursEncoder encoder;
  CHECK(clip_frames(encoder, 0) == 4);
  CHECK(clip_frames(FivesEncoder(), 0) == kClipFrames);
  CHECK(clip_frames(FivesEncoder(), 3) == 3);
  CHECK(clip_vector_config(encoder, 4) == Json{{"frames", 4}, {"pool", "tokens"}});
  ClipVectors clips(encoder);
  clips.push({{1}, {2}, {3}, {4}});
  clips.push({{5}});
  CHECK(clips.take(false).size() == 2);
  clips.push({});
  clips.push({{1}, {2}});
  clips.push({{1}, {2}, {3}});
  clips.push({{4}, {3}, {2}, {1}});
  const std::vector<ClipVector> got = clips.take(true);
  REQUIRE(got.size() == 4);
  CHECK(encoder.calls == std::vector<std::size_t>{2, 3});
  CHECK(got[0].frames == 0);
  CHECK(got[0].vector == std::vector<float>(4));
  CHECK(largest_difference(got[1].vector, direction_of({1, 1, 2, 2})) < 1e-6);
  CHECK(largest_difference(got[2].vector, direction_of({1, 2, 2, 3})) < 1e-6);
  CHECK(largest_difference(got[3].vector, direction_of({4, 3, 2, 1})) < 1e-6);
}

TEST_CASE("an encoder of videos gets the frames of a window by themselves") {
  const FoursEncoder encoder;
  ClipVectors clips(encoder);
  clips.begin(4, 2);  // a clip that cannot be decoded
  clips.add({9}, true, 0);
  clips.drop();
  clips.begin(4, 3);
  for (int i = 0; i < 9; ++i)  // frame 8 is of the clip alone, and window 2 has no frame but 7
    clips.add({static_cast<float>(i)}, i % 2 == 0 && i > 1,
              i == 8 ? std::nullopt : std::optional<std::size_t>(i == 7 ? 2 : i / 4));
  CHECK(encoder.calls == std::vector<std::size_t>{2});
  clips.end();
  const std::vector<ClipVector> got = clips.take(true);
  REQUIRE(got.size() == 1);
  CHECK(encoder.calls == std::vector<std::size_t>{2, 2});
  CHECK(largest_difference(got[0].vector, direction_of({2, 4, 6, 8})) < 1e-6);
  REQUIRE(got[0].windows.size() == 3);
  CHECK(largest_difference(got[0].windows[0], direction_of({0, 1, 2, 3})) < 1e-6);
  CHECK(largest_difference(got[0].windows[1], direction_of({4, 5, 5, 6})) < 1e-6);
  CHECK(largest_difference(got[0].windows[2], direction_of({7, 7, 7, 7})) < 1e-6);
}

TEST_CASE("a clip's score is the mean of its frames', whose vectors have length 1 then") {
  const FivesEncoder encoder;
  ClipVectors clips(encoder, [](std::span<const float> frame) { return 10.0 * frame[0]; });
  clips.push({{3, 4}, {0, 2}, {-10, 0}});
  clips.push({});
  clips.push({{8, 6}});
  const std::vector<ClipVector> got = clips.take(true);
  REQUIRE(got.size() == 3);
  CHECK(got[0].score == Approx((6.0 + 0 - 10) / 3));
  CHECK(got[0].vector == mean_direction({{3, 4}, {0, 2}, {-10, 0}}));
  CHECK(got[1].score == 0);
  CHECK(got[1].frames == 0);
  CHECK(got[0].frames == 3);
  CHECK(got[2].score == Approx(8));
}
