// SPDX-License-Identifier: Apache-2.0
#include "dist/ran_time.h"

#include <catch2/catch.hpp>

using vfm::dist::seconds_ran;

TEST_CASE("time that ran: a late turn of a busy machine counts, a stop does not") {
  CHECK(seconds_ran(0.001, 0.001) == 0.001);
  CHECK(seconds_ran(0.9, 0.001) == 0.9);
  CHECK(seconds_ran(1.4, 0.5) == 1.4);
  // A limit of two seconds is as long after a stop as before it.
  double waited = 0;
  for (const double passed : {0.001, 0.001, 12.0, 0.001, 3600.0, 0.001})
    waited += seconds_ran(passed, 0.001);
  CHECK(waited == Approx(0.006));
  CHECK(seconds_ran(12, 0.5) == 0.5);
}
