// A stop is no error: what records errors, or makes others of them, lets it pass.
// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <exception>
#include <type_traits>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/left_behind.h"
#include "base/run_end.h"
#include "share/ordered.h"

using namespace vfm;
using namespace vfm::share;

static_assert(!std::is_base_of_v<std::exception, Stopped>);

namespace {
/// A full disk stops a program as a signal does, and can be taken back.
struct FullDisk {
  FullDisk() { CHECK_THROWS_AS(throw_output_error(ENOSPC, "cannot write 'x'"), Stopped); }
  ~FullDisk() { forget_run_end(); }
};
}  // namespace

TEST_CASE("a stop is not made a wrong use; an error is") {
  CHECK_THROWS_AS(as_usage([] { fail("it is damaged"); }), Error);
  const FullDisk stop;
  CHECK_THROWS_AS(as_usage([] { check_stop(); }), Stopped);
}

TEST_CASE("a stop in any part of ordered work comes out as one") {
  const FullDisk stop;
  Slots slots(3);
  for (int where = 0; where < 3; ++where) {
    int i = 0;
    const auto stop_in = [&](int part) {
      if (part == where) check_stop();
    };
    const auto run = [&] {
      for_each_ordered<int, int>(
          slots,
          [&] {
            stop_in(0);
            return i < 9 ? std::optional(i++) : std::nullopt;
          },
          [&](int& n) {
            stop_in(1);
            return n;
          },
          [&](int&) { stop_in(2); });
    };
    CHECK_THROWS_AS(run(), Stopped);
  }
}

TEST_CASE("one more that hangs than a program carries ends the run, and the first reason stays") {
  for (int i = 0; i < kMostLeftBehind; ++i)
    count_left_behind();
  CHECK_FALSE(run_ends());
  CHECK_FALSE(stop_requested());
  CHECK_NOTHROW(check_stop());
  // One that comes back makes room.
  count_returned();
  count_left_behind();
  CHECK_FALSE(run_ends());
  count_left_behind();
  CHECK(run_ends());
  CHECK(stop_requested());
  CHECK_THROWS_AS(check_stop(), Stopped);
  CHECK_THROWS_AS(throw_output_error(ENOSPC, "cannot write 'x'"), Stopped);
  CHECK_THAT(run_end_message(), Catch::Contains("more than 16 decodings hang") &&
                                    Catch::Contains("with --isolate, in programs that have it"));
  while (left_behind() > 0)
    count_returned();
  CHECK(run_ends());
  forget_run_end();
}
