// SPDX-License-Identifier: Apache-2.0
#include "data/clip_pixels.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "media/picture_file.h"

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
