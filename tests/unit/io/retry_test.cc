// When a failed request is sent again.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/retry.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "base/error.h"

using namespace vfm::io;

namespace {

/// Time that passes only in pauses.
struct MadeTime {
  double now = 1000, drawn = 0.5;
  std::vector<double> pauses;

  Retry::World world() {
    return {[this] { return now; },
            [this](double seconds) {
              pauses.push_back(seconds);
              now += seconds;
            },
            [this] { return drawn; }};
  }
};

}  // namespace

TEST_CASE("pauses double, with a random part, until the time is over") {
  MadeTime time;
  Retry retry(120, time.world());
  while (retry.wait())
    continue;
  REQUIRE(time.pauses.size() > 8);
  CHECK(time.pauses[0] == Approx(0.1));
  CHECK(time.pauses[1] == Approx(0.2));
  CHECK(time.pauses[2] == Approx(0.4));
  CHECK(time.pauses.back() == Approx(20));
  CHECK(time.now <= 1120);
  CHECK(time.now > 1090);
  CHECK(retry.tries() == static_cast<int>(time.pauses.size()) + 1);
  MadeTime other;
  other.drawn = 1;
  Retry longer(120, other.world());
  CHECK(longer.wait());
  CHECK(other.pauses[0] == Approx(0.15));
}

TEST_CASE("the server's wish is followed, and bytes that came begin the time anew") {
  MadeTime time;
  Retry retry(120, time.world());
  CHECK(retry.wait(30));
  CHECK(time.pauses.back() == 30);
  CHECK(retry.wait(80));
  CHECK_FALSE(retry.wait(30));
  retry.progress();
  CHECK(retry.wait(30));
  CHECK_FALSE(retry.wait(121));
  // The whole time may be used, and pauses are short again.
  Retry exact(0.25, time.world());
  CHECK(exact.wait(0.25));
  CHECK_FALSE(exact.wait());
  exact.progress();
  CHECK(exact.wait());
  CHECK(time.pauses.back() == Approx(0.1));
}

TEST_CASE("what is cancelled waits no longer") {
  const std::atomic<bool> cancelled{true};
  Retry retry(120, &cancelled);
  CHECK_THROWS_AS(retry.wait(60), vfm::Stopped);
}

TEST_CASE("only statuses that pass are tried again") {
  for (const int status : {408, 429, 500, 502, 503, 504})
    CHECK(may_succeed_later(status));
  for (const int status : {200, 206, 301, 400, 403, 404, 409, 412, 416, 501})
    CHECK_FALSE(may_succeed_later(status));
}
