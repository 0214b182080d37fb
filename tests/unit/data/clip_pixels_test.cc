// SPDX-License-Identifier: Apache-2.0
#include "data/clip_pixels.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "media/container/picture_file.h"

using namespace vfm;
using namespace vfm::data;

TEST_CASE("buckets keep the shape, about the area, in multiples") {
  const auto check = [](int w, int h, int size, int multiple, int bw, int bh) {
    const Bucket bucket = bucket_of(w, h, size, multiple);
    CHECK(bucket.width == bw);
    CHECK(bucket.height == bh);
  };
  check(64, 64, 64, 16, 64, 64);
  check(1920, 1080, 256, 16, 336, 192);
  check(1080, 1920, 256, 16, 192, 336);
  check(640, 480, 256, 16, 288, 224);
  check(1, 1, 16, 32, 32, 32);
  check(10000, 1, 64, 16, 6400, 16);
  for (int w = 50; w < 400; w += 7) {
    const Bucket bucket = bucket_of(w, 200, 256, 16);
    CHECK(std::abs(bucket.width * bucket.height / (256.0 * 256) - 1) < 0.12);
    CHECK(std::abs(std::log(bucket.width / double(bucket.height) / (w / 200.0))) < 0.15);
  }
}

TEST_CASE("frames are taken by time, exactly, and never repeated") {
  using Frames = std::vector<std::int64_t>;
  // 12 frames a second in ticks of 1/12: every second, every third.
  Frames pts;
  for (std::int64_t i = 0; i < 12; ++i)
    pts.push_back(100 + i);
  CHECK(sample_times(pts, 112, {1, 12}, {6, 1}) == Frames{0, 2, 4, 6, 8, 10});
  CHECK(sample_times(pts, 112, {1, 12}, {4, 1}) == Frames{0, 3, 6, 9});
  CHECK(sample_times(pts, 112, {1, 12}, {8, 1}) == Frames{0, 2, 3, 5, 6, 8, 9, 11});
  CHECK(sample_times(pts, 112, {1, 12}, {12, 1}).empty());
  CHECK(sample_times(pts, 112, {1, 12}, {60000, 1001}).empty());
  // Milliseconds round: 83, 167, 250, 333, 417 are still every frame's own time.
  CHECK(sample_times({0, 42, 83, 125, 167, 208, 250, 292, 333, 375}, 417, {1, 1000}, {12, 1}) ==
        Frames{0, 2, 4, 6, 8});
  // Variable rate: a frame that lasts shows until the next one comes.
  CHECK(sample_times({0, 1, 2, 3, 10, 11, 12}, 14, {1, 10}, {2, 1}) == Frames{0, 3, 4});
  CHECK(sample_times({}, 0, {1, 10}, {2, 1}).empty());
  CHECK(sample_times({5}, 6, {1, 10}, {2, 1}) == Frames{0});
}

TEST_CASE("clips have 1 + k groups of frames") {
  CHECK(whole_groups(17, 17, 8) == 17);
  CHECK(whole_groups(16, 17, 8) == 9);
  CHECK(whole_groups(1000, 17, 8) == 17);
  CHECK(whole_groups(1000, 20, 8) == 17);
  CHECK(whole_groups(8, 17, 8) == 1);
  CHECK(whole_groups(1, 1, 8) == 1);
  CHECK(whole_groups(0, 17, 8) == 0);
  CHECK(whole_groups(7, 100, 1) == 7);
}

namespace {

/// "0+17 17+17": the windows of a clip, in the middle or at `place`.
std::string windows(std::int64_t available, const WindowRule& rule,
                    std::optional<double> place = {}) {
  const WindowPlan plan = plan_windows(available, rule);
  std::string all;
  for (std::int64_t i = 0; i < plan.windows; ++i)
    all += (i > 0 ? " " : "") + std::to_string(plan.first_of(i, available, place)) + "+" +
           std::to_string(plan.frames_of(i));
  return all;
}

}  // namespace

TEST_CASE("windows follow one another, and half of one at the end is one") {
  const WindowRule all{17, 8, 0, 0};
  CHECK(windows(51, all) == "0+17 17+17 34+17");
  CHECK(windows(54, all) == "1+17 18+17 35+17");  // what is left over is on both sides
  CHECK(windows(54, all, 0) == "0+17 17+17 34+17");
  CHECK(windows(54, all, 1) == "3+17 20+17 37+17");
  CHECK(windows(59, all) == "4+17 21+17 38+17");
  CHECK(windows(60, all) == "0+17 17+17 34+17 51+9");
  CHECK(windows(67, all) == "3+17 20+17 37+17 54+9");
  CHECK(windows(17, all) == "0+17");
  CHECK(windows(16, all) == "3+9");
  CHECK(windows(8, all) == "3+1");
  CHECK(windows(0, all).empty());
  CHECK(windows(40, {20, 8, 0, 0}) == "3+17 20+17");  // 17 is what fits in 20
  CHECK(windows(3, {1, 8, 0, 0}) == "0+1 1+1 2+1");
  CHECK(plan_windows(std::int64_t{1} << 40, all).windows == kMostWindows);
}

TEST_CASE("windows that share frames with the next begin sooner") {
  CHECK(windows(33, {17, 8, 0, 1}) == "0+17 16+17");
  CHECK(windows(33, {17, 8, 0, 9}) == "0+17 8+17 16+17");
  CHECK(windows(41, {17, 8, 0, 1}) == "0+17 16+17 32+9");
  CHECK(windows(26, {17, 8, 0, 9}) == "0+17 8+17");  // nine frames more have been seen
}

TEST_CASE("a number of windows is spread over the clip") {
  CHECK(windows(24, {17, 8, 1, 0}) == "3+17");
  CHECK(windows(24, {17, 8, 1, 0}, 1) == "7+17");
  CHECK(windows(100, {17, 8, 2, 0}) == "16+17 66+17");  // in the middle of its half
  CHECK(windows(100, {17, 8, 2, 0}, 0) == "0+17 50+17");
  CHECK(windows(40, {17, 8, 5, 0}) == "1+17 21+17");
  for (const std::int64_t available : {1, 9, 16, 17, 30, 51, 100})
    CHECK(windows(available, {17, 8, 1, 0}, 0.3) ==
          std::to_string(std::min<std::int64_t>(
              available - whole_groups(available, 17, 8),
              static_cast<std::int64_t>(
                  0.3 * static_cast<double>(available - whole_groups(available, 17, 8) + 1)))) +
              "+" + std::to_string(whole_groups(available, 17, 8)));
}

TEST_CASE("each frame of a clip is counted once, in a latent or with why it is in none") {
  const auto counts = [](std::int64_t read, std::int64_t available, const WindowRule& rule) {
    const FrameCount n = count_frames(read, available, rule);
    CHECK(n.read == n.latents + n.rate + n.windows + n.remainder);
    return std::vector<std::int64_t>{n.latents, n.rate, n.windows, n.remainder};
  };
  using Counts = std::vector<std::int64_t>;
  CHECK(counts(60, 60, {17, 8, 0, 0}) == Counts{60, 0, 0, 0});
  CHECK(counts(59, 59, {17, 8, 0, 0}) == Counts{51, 0, 0, 8});
  CHECK(counts(60, 60, {17, 8, 1, 0}) == Counts{17, 0, 43, 0});
  CHECK(counts(60, 30, {17, 8, 0, 0}) == Counts{26, 30, 0, 4});
  CHECK(counts(33, 33, {17, 8, 0, 9}) == Counts{33, 0, 0, 0});
  CHECK(counts(7, 7, {17, 8, 0, 0}) == Counts{1, 0, 0, 6});
  CHECK(counts(100, 100, {17, 8, 3, 4}) == Counts{51, 0, 49, 0});
}

TEST_CASE("a window's key is found again") {
  CHECK(window_key("a", 0, 1) == "a");
  CHECK(window_key("a", 0, 2) == "a-w000");
  CHECK(window_key("a", 1234, 2000) == "a-w1234");
  CHECK(window_of_key("a", "a") == 0);
  CHECK(window_of_key("a-w012", "a") == 12);
  CHECK_FALSE(window_of_key("a-w012", "b"));
  CHECK_FALSE(window_of_key("a-wide", "a"));
  CHECK_FALSE(window_of_key("ab", "a"));
}
