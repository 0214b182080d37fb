// Frames of clips: which are given, what is measured on the way, and what becomes of clips that
// have fewer than they promise.
// SPDX-License-Identifier: Apache-2.0
#include "columns/clip_frames.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "columns/embed/glimpse.h"
#include "media/container/picture_file.h"
#include "support/temporary_folder.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// Takes the frames up to number `last`, or all but so many where it is below 0.
struct NumberTaker final : FrameTaker {
  explicit NumberTaker(std::int64_t last_of) : last(last_of) {}
  std::int64_t begin(std::int64_t frames, double fps) override {
    promised.push_back(frames);
    rate = fps;
    taken.clear();
    if (begun) begun(promised.size());
    return last < 0 ? frames + last : last;
  }
  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    CHECK(frame.width == info.width);
    taken.push_back(number);
    times.push_back(frame.pts);
  }
  void give_up() override { ++given_up; }

  std::int64_t last;
  std::vector<std::int64_t> promised, taken, times;
  double rate = 0;
  int given_up = 0;
  std::function<void(std::size_t)> begun;
};

Json facts_of(const std::string& video, const Json& known, const char* extension = "mp4") {
  NumberTaker taker(0);
  return take_frames({extension, video}, "it", known, nullptr, taker);
}

/// Whose pictures do not get small, and stand in their order behind the header.
std::string large_video(int frames) {
  media::VideoEncoder encoder(
      {.quality = 0, .width = 128, .height = 96, .time_base = {1, 8}, .frame_rate = {8, 1}});
  std::uint32_t seed = 1;
  for (int i = 0; i < frames; ++i) {
    media::RgbImage image = plain_image({0, 0, 0}, 128, 96);
    for (std::uint8_t& byte : image.pixels)
      seed = seed * 1664525 + 1013904223, byte = static_cast<std::uint8_t>(seed >> 24);
    encoder.add(image, i);
  }
  return encoder.finish();
}

}  // namespace

TEST_CASE("what a sample's json lacks is measured over all frames, and nothing else") {
  const std::string video = make_video(20, kRed);
  const Json all = {{"width", 64}, {"height", 48}, {"seconds", 2.5}, {"fps", 8}, {"frames", 20}};
  CHECK(facts_of(video, Json()) == all);
  CHECK(facts_of(video, Json::array()) == all);
  CHECK(facts_of(video, Json::object()) == all);
  CHECK(facts_of(video, {{"width", 1}, {"fps", "8"}, {"frames", nullptr}}) == all);
  CHECK(facts_of(video, {{"width", 1}, {"height", 1}}) ==
        Json{{"seconds", 2.5}, {"fps", 8}, {"frames", 20}});
  CHECK(facts_of(video, {{"width", 1}, {"height", 1}, {"duration", 1}, {"frames", 2}}) ==
        Json{{"fps", 8}});
  CHECK(facts_of(video, {{"width", 1}, {"height", 1}, {"seconds", 1}, {"fps", 2}}) ==
        Json{{"frames", 20}});
  CHECK(facts_of(video, {{"fps", 1}, {"frames", 1}}) ==
        Json{{"width", 64}, {"height", 48}, {"seconds", 2.5}});
  CHECK(facts_of(video, {{"height", 1}, {"seconds", 1}, {"fps", 2}, {"frames", 2}}) ==
        Json{{"width", 64}, {"height", 48}});
  CHECK(facts_of(video, {{"width", 1}, {"height", 1}, {"seconds", 1}, {"fps", 2}, {"frames", 2}})
            .empty());
  const std::string picture = media::encode_png(plain_image(kBlue, 40, 30));
  CHECK(facts_of(picture, Json(), "png") == Json{{"width", 40}, {"height", 30}});
  CHECK(facts_of(picture, {{"width", 1}, {"height", 1}}, "png").empty());
  CHECK_THROWS_WITH(facts_of("no video", Json()), Catch::Contains("it"));
}

TEST_CASE("the rate is the nominal one where a video keeps it") {
  const auto with_gap = [](int frames, int gap) {
    media::VideoEncoder encoder(
        {.width = 64, .height = 48, .time_base = {1, 800}, .frame_rate = {8, 1}});
    for (int i = 0; i < frames; ++i)
      encoder.add(plain_image(kRed, 64, 48), 100 * i + (i > 0 ? gap : 0));
    return facts_of(encoder.finish(), Json());
  };
  CHECK(with_gap(10, 0) ==
        Json{{"width", 64}, {"height", 48}, {"seconds", 1.25}, {"fps", 8}, {"frames", 10}});
  const Json slow = with_gap(10, 1000);
  CHECK(slow["seconds"] == 2.5);
  CHECK(slow["fps"].get<double>() == Approx(4).epsilon(0.021));
}

TEST_CASE("a frame's shape as shown is upright and of square pixels") {
  media::StreamInfo info;
  info.rotation = 90, info.mirror = true, info.display_width = 30, info.display_height = 40;
  const media::ScaleOptions shown = as_shown(info);
  CHECK(shown.rotation == 90);
  CHECK(shown.mirror);
  CHECK(shown.width == 30);
  CHECK(shown.height == 40);
  CHECK(part_begin(10, 4, 0) == 0);
  CHECK(part_begin(10, 4, 1) == 2);
  CHECK(part_begin(10, 4, 3) == 7);
  CHECK(part_begin(10, 4, 4) == 10);
}

TEST_CASE("frames are given up to the last one that is wanted, in one decoding") {
  const std::string video = make_video(20, kRed);
  NumberTaker some(4);
  take_frames({"mp4", video}, "it", {{"width", 1}, {"height", 1}}, nullptr, some);
  CHECK(some.promised == std::vector<std::int64_t>{20});
  CHECK(some.rate == 8);
  CHECK(some.taken == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  NumberTaker all(-1);
  const TemporaryFolder folder;
  folder.write("video.mp4", video);
  take_file_frames(folder / "video.mp4", nullptr, all);
  CHECK(all.taken.size() == 20);
  CHECK(all.taken.back() == 19);
  NumberTaker picture(-1);
  take_frames({"png", media::encode_png(plain_image(kBlue, 40, 30))}, "it", Json(), nullptr,
              picture);
  CHECK(picture.promised == std::vector<std::int64_t>{1});
  CHECK(picture.taken == std::vector<std::int64_t>{0});
  CHECK(some.given_up + all.given_up + picture.given_up == 0);
}

TEST_CASE("frames are counted where a container does not say how many there are") {
  std::string video = "YUV4MPEG2 W32 H16 F8:1 Ip A1:1 C420jpeg\n";
  for (int i = 0; i < 5; ++i)
    video += "FRAME\n" + std::string(32 * 16 * 3 / 2, static_cast<char>(40 * i));
  NumberTaker taker(-1);
  const Json facts = take_frames({"y4m", video}, "it", Json(), nullptr, taker);
  CHECK(taker.promised == std::vector<std::int64_t>{5});
  CHECK(taker.taken.size() == 5);
  CHECK(facts ==
        Json{{"width", 32}, {"height", 16}, {"seconds", 0.625}, {"fps", 8}, {"frames", 5}});
}

TEST_CASE("of a clip with fewer frames than its header says, those that there are are planned") {
  const std::string video = large_video(12);
  const std::string half = video.substr(0, video.size() / 2);
  NumberTaker taker(-1);
  const Json facts = take_frames({"mp4", half}, "it", Json(), nullptr, taker);
  REQUIRE(taker.promised.size() == 2);
  const std::int64_t left = taker.promised[1];
  CHECK(taker.promised[0] == 12);
  CHECK((left >= 4 && left <= 8));
  CHECK(static_cast<std::int64_t>(taker.taken.size()) == left);
  CHECK(taker.given_up == 0);
  CHECK(facts["frames"] == left);
  CHECK(facts["seconds"] == static_cast<double>(left) / 8);
  // Frames that are there are enough where no later one is wanted.
  NumberTaker early(2);
  CHECK(take_frames({"mp4", half}, "it", Json(), nullptr, early)["frames"] == left);
  CHECK(early.promised == std::vector<std::int64_t>{12});
  // Middle frames are those of the shorter clip.
  struct Middles final : MiddleFrames {
    Middles() : MiddleFrames(2) {}
    void use(const media::Frame& frame, const media::StreamInfo&) override {
      times.push_back(frame.pts);
    }
    void clear() override { times.clear(); }
    std::vector<std::int64_t> times;
  } middles;
  take_frames({"mp4", half}, "it", Json(), nullptr, middles);
  REQUIRE(middles.times.size() == 2);
  CHECK(middles.times[0] == taker.times[static_cast<std::size_t>(left / 4)]);
  middles.give_up();
  CHECK(middles.times.empty());
}

TEST_CASE("a clip whose frames become fewer while it is read is given up") {
  const TemporaryFolder folder;
  const std::string path = folder / "video.mp4", video = large_video(24);
  folder.write("video.mp4", video.substr(0, video.size() / 2));
  NumberTaker taker(-1);
  taker.begun = [&](std::size_t times) {
    if (times == 2) std::filesystem::resize_file(path, video.size() / 4);
  };
  take_file_frames(path, nullptr, taker);
  CHECK(taker.promised.size() == 2);
  CHECK(taker.given_up == 1);
}

TEST_CASE("a glimpse of a clip is of its parts, and of an eighth of a second later") {
  const std::string video = make_video(32, [](int i) {
    return Colour{static_cast<std::uint8_t>(8 * i), 80, 80};
  });
  const Seen seen = see_member({"mp4", video}, "it", Json(), nullptr);
  const curate::GlimpsePlan plan = curate::plan_glimpse(32, 8);
  REQUIRE(seen.glimpse.pictures.size() == plan.first.size());
  REQUIRE(plan.step > 0);
  REQUIRE(seen.glimpse.later.size() == plan.first.size());
  CHECK(seen.glimpse.lag == static_cast<double>(plan.step) / 8);
  const auto red_of = [](const media::RgbImage& image) { return int{image.pixels[0]}; };
  for (std::size_t i = 0; i < plan.first.size(); ++i) {
    CHECK(red_of(seen.glimpse.pictures[i]) == Approx(8 * plan.first[i]).margin(6));
    CHECK(red_of(seen.glimpse.later[i]) == Approx(8 * (plan.first[i] + plan.step)).margin(6));
    CHECK(seen.glimpse.pictures[i].width == curate::kGlimpseSize);
    CHECK(seen.glimpse.pictures[i].height == curate::kGlimpseSize);
  }
  const TemporaryFolder folder;
  folder.write("one.png", media::encode_png(plain_image(kBlue, 40, 30)));
  const curate::Glimpse one = glimpse_of_file(folder / "one.png", nullptr);
  CHECK(one.pictures.size() == 1);
  CHECK(one.later.empty());
}
