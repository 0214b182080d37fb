// What the page of --explain keeps of a long video.
// SPDX-License-Identifier: Apache-2.0
#include "clip/explanation.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

using namespace vfm::clip;

TEST_CASE("of a series of any length a thousand points stay, the highest among them") {
  for (const int count : {1, 999, 1000, 1001, 2001, 123457}) {
    Peaks peaks;
    const auto value = [](int i) { return std::fmod(i * 0.7548776662, 1.0) + (i == 700 ? 5 : 0); };
    for (int i = 0; i < count; ++i)
      peaks.add(i, value(i));
    REQUIRE(peaks.x().size() == peaks.y().size());
    CHECK(peaks.x().size() <= Peaks::kMost);
    CHECK(peaks.x().size() >= std::min<std::size_t>(static_cast<std::size_t>(count), 500));
    CHECK(std::is_sorted(peaks.x().begin(), peaks.x().end()));
    for (std::size_t i = 0; i < peaks.x().size(); ++i)
      CHECK(peaks.y()[i] == value(static_cast<int>(peaks.x()[i])));
    if (count > 700) CHECK(*std::max_element(peaks.y().begin(), peaks.y().end()) == value(700));
    // No part without a point: their ends are near each other.
    CHECK(peaks.x().back() >= count - 1 - 2.0 * count / 500);
  }
}
