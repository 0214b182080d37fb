// SPDX-License-Identifier: Apache-2.0
#include "dist/section_times.h"

#include <catch2/catch.hpp>

using vfm::dist::SectionTimes;

TEST_CASE("limits of sections: the given one until five steps are known, then three usual steps") {
  SectionTimes times;
  double now = 100;
  for (int step = 0; step < 5; ++step, now += 20) {
    CHECK(times.begin("step", 600, 10, now) == 600);
    CHECK_FALSE(times.learnt());
  }
  // The fifth ends here. One that took long, such as the first, changes nothing.
  CHECK(times.begin("step", 600, 10, now) == 60);
  CHECK(times.learnt());
  CHECK(times.begin("step", 600, 10, now + 500) == 60);
  CHECK(times.begin("step", 30, 10, now + 520) == 30);
  CHECK_FALSE(times.learnt());
  CHECK(times.begin("step", 600, 70, now + 540) == 70);
  CHECK(times.begin("step", 600, 0, now + 560) == 600);
  CHECK(times.begin("step", 0, 10, now + 580) == 0);
}

TEST_CASE("limits of sections: short steps have the least limit, and other sections their own") {
  SectionTimes times;
  double now = 0;
  for (int step = 0; step < 20; ++step) {
    times.begin("step", 600, 10, now += 0.1);
    // Time of a checkpoint is no time of the step.
    CHECK(times.begin("checkpoint", 1800, 10, now += 0.1) == 1800);
    now += 50;
  }
  CHECK(times.begin("step", 600, 10, now) == 10);
  CHECK(times.begin("validation", 600, 10, now + 1) == 600);
  // A disk may be busy with a checkpoint: how long such a step takes tells nothing of another.
  for (int step = 0; step < 20; ++step)
    CHECK(times.begin("step beside a checkpoint", 600, 10, now += 5) == 30);
  CHECK(times.begin("step", 600, 10, now) == 10);
  // Only the last fifty count.
  for (int step = 0; step < 50; ++step)
    times.begin("step", 600, 10, now += 30);
  CHECK(times.begin("step", 600, 10, now += 30) == 90);
}
