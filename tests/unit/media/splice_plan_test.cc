// SPDX-License-Identifier: Apache-2.0
#include "media/container/splice_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

using vfm::media::decoding_times;
using vfm::media::plan_splice;
using vfm::media::SplicePlan;

namespace {

using Times = std::vector<std::int64_t>;
using Places = std::vector<std::size_t>;

/// The plan of a clip of the frames [from, to) from the key frame on, one a tick.
SplicePlan plan_of(const Times& packets, std::int64_t to) {
  Times frames;
  for (std::int64_t t = packets.at(0); t < to; ++t)
    frames.push_back(t);
  return plan_splice(packets, frames, to);
}

}  // namespace

TEST_CASE("Without reordering all packets before the end are copied", "[splice]") {
  const SplicePlan plan = plan_of({10, 11, 12, 13, 14, 15}, 14);
  CHECK(plan.packets == Places{0, 1, 2, 3});
  CHECK(plan.frames == 4);
}

TEST_CASE("Frames that need one behind the end are the tail", "[splice]") {
  // I P B B B P B B B
  const Times packets{0, 4, 2, 1, 3, 8, 6, 5, 7, 12, 10, 9, 11};
  CHECK(plan_of(packets, 9).frames == 9);  // ends behind a P
  CHECK(plan_of(packets, 5).frames == 5);  //
  CHECK(plan_of(packets, 8).frames == 5);  // 5, 6 and 7 need 8
  CHECK(plan_of(packets, 7).frames == 5);
  CHECK(plan_of(packets, 6).frames == 5);
  CHECK(plan_of(packets, 4).frames == 1);
  CHECK(plan_of(packets, 1).frames == 1);
  CHECK(plan_of(packets, 8).packets == Places{0, 1, 2, 3, 4});
}

TEST_CASE("What leads to the key frame is left out", "[splice]") {
  // An open GOP: 7, 8 and 9 are shown before the key frame 10.
  const Times packets{10, 8, 7, 9, 12, 11, 14, 13};
  const SplicePlan plan = plan_of(packets, 13);
  CHECK(plan.packets == Places{0, 4, 5});
  CHECK(plan.frames == 3);
  // One that ends where the next open GOP begins: its leading pictures need what is behind the end.
  const SplicePlan before = plan_of({0, 2, 1, 6, 4, 3, 5}, 6);
  CHECK(before.frames == 3);
}

TEST_CASE("Copied frames follow each other without a gap", "[splice]") {
  // 3 is decoded long before 1, which comes behind a frame of the next clip.
  const SplicePlan plan = plan_of({0, 3, 2, 9, 1, 4}, 5);
  CHECK(plan.packets == Places{0});
  CHECK(plan.frames == 1);
}

TEST_CASE("Packets that are not those of the frames end what is copied", "[splice]") {
  const Times frames{0, 1, 2, 3};
  CHECK(plan_splice(Times{0, 1, 5, 2, 3}, frames, 4).frames == 2);  // not shown in the clip
  CHECK(plan_splice(Times{0, 1, 1, 2, 3}, frames, 4).frames == 2);  // a second field
  CHECK(plan_splice(Times{0, 1, 3}, frames, 4).frames == 2);        // a frame without a packet
  CHECK(plan_splice(Times{1, 2, 3}, frames, 4).frames == 0);        // not from the key frame on
  CHECK(plan_splice(Times{}, frames, 4).frames == 0);
  CHECK(plan_splice(Times{0}, Times{}, 4).frames == 0);
}

TEST_CASE("Any clip of a stream with B-frames is a copy and a tail", "[splice]") {
  // Variable times, pyramids of 8.
  Times packets{0};
  for (std::int64_t p = 8; p <= 64; p += 8)
    for (const std::int64_t back : {0, 4, 6, 7, 5, 2, 3, 1})
      packets.push_back(p - back);
  const auto time = [](std::int64_t t) { return t * t + 3 * t; };
  std::transform(packets.begin(), packets.end(), packets.begin(), time);
  for (std::int64_t length = 1; length <= 60; ++length) {
    Times frames;
    for (std::int64_t t = 0; t < length; ++t)
      frames.push_back(time(t));
    const SplicePlan plan = plan_splice(packets, frames, time(length));
    // Whole groups of eight are copied, and the frame that a group begins with.
    CHECK(static_cast<std::int64_t>(plan.frames) == 1 + (length - 1) / 8 * 8);
    Times shown;
    for (const std::size_t place : plan.packets)
      shown.push_back(packets[place]);
    std::sort(shown.begin(), shown.end());
    CHECK(std::equal(shown.begin(), shown.end(), frames.begin()));
  }
}

TEST_CASE("Decoding times are in order and never behind what is shown", "[splice]") {
  CHECK(decoding_times(Times{5, 6, 8}) == Times{5, 6, 8});
  // A head of two frames, then I P B B: one that is two places late delays all by two.
  CHECK(decoding_times(Times{0, 10, 20, 50, 30, 40}) == Times{-10, 0, 10, 20, 30, 40});
  CHECK(decoding_times(Times{0, 10, 50, 30, 20, 40}) == Times{-20, -10, 0, 10, 20, 30});
  CHECK(decoding_times(Times{7}) == Times{7});
  CHECK(decoding_times(Times{}).empty());
}
