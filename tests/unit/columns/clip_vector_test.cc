// Which frames stand for a clip, and how their vectors become one.
// SPDX-License-Identifier: Apache-2.0
#include "columns/clip_vector.h"

#include <catch2/catch.hpp>

#include "support/distance.h"

using namespace vfm;
using namespace vfm::columns;

TEST_CASE("the frames of a clip are the middles of equal parts, each once") {
  using Frames = std::vector<std::int64_t>;
  CHECK(plan_clip_frames(16, 8) == Frames{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(plan_clip_frames(100, 4) == Frames{12, 37, 62, 87});
  CHECK(plan_clip_frames(100, 1) == Frames{50});
  CHECK(plan_clip_frames(8, 8) == Frames{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(plan_clip_frames(3, 8) == Frames{0, 1, 2});
  CHECK(plan_clip_frames(1, 8) == Frames{0});
  CHECK(plan_clip_frames(std::int64_t{1} << 40, 64).back() < std::int64_t{1} << 40);
}

TEST_CASE("vectors weigh the same in their mean, whatever their length") {
  const std::vector<float> expected{0.70710678f, 0.70710678f, 0};
  CHECK(largest_difference(pool_vectors({{3, 0, 0}, {0, 100, 0}}, 3), expected) < 1e-6);
  CHECK(largest_difference(pool_vectors({{3, 0, 0}, {0, 0, 0}}, 3), std::vector<float>{1, 0, 0}) <
        1e-6);
  CHECK(pool_vectors({}, 3) == std::vector<float>(3));
}
