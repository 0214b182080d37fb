// Files that come later than a reader looks for them.
// SPDX-License-Identifier: Apache-2.0
#include "io/late_files.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/stopwatch.h"
#include "io/file.h"
#include "support/temporary_folder.h"

using namespace vfm;

TEST_CASE("a file is looked at until it has its size") {
  const TemporaryFolder folder;
  const auto look = [&] {
    if (io::read_file(folder / "a") != "whole") fail("'a' is not whole");
  };
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    folder.write("a", "who");
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    folder.write("a", "whole");
  });
  const Stopwatch watch;
  io::look_until_seen(60, look);
  CHECK(watch.seconds() > 0.25);
  CHECK(watch.seconds() < 30);
  other.join();
}

TEST_CASE("a file that does not come is a fault of the disk") {
  const auto look = [] { fail_as(Cause::open, "cannot open 'a'"); };
  Stopwatch watch;
  const auto cause_of = [&](double seconds) {
    try {
      io::look_until_seen(seconds, look);
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "cannot open 'a'");
      return error.cause();
    }
    return Cause::other;
  };
  CHECK(cause_of(0.3) == Cause::disk);
  CHECK(watch.seconds() >= 0.3);
  // The next one is not waited for as long.
  watch = {};
  CHECK(cause_of(0.3) == Cause::disk);
  CHECK(watch.seconds() < 0.2);
  // One without a limit is waited for all the same.
  int looks = 0;
  io::look_until_seen(0, [&] {
    if (++looks < 3) look();
  });
  CHECK(looks == 3);
  // For a new part all is as at first.
  io::forget_vain_waits();
  watch = {};
  CHECK(cause_of(0.1) == Cause::disk);
  CHECK(watch.seconds() >= 0.1);
  io::forget_vain_waits();
  CHECK_THROWS_WITH(io::look_until_seen(60, [] { fail_usage("a wrong option"); }),
                    "a wrong option");
}
