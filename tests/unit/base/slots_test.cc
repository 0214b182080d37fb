// Worker slots, the jobserver protocol, and ordered parallel work.
// SPDX-License-Identifier: Apache-2.0
#include "base/slots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/ordered.h"
#include "support/temporary_folder.h"

using namespace vfm;

namespace {
std::optional<int> count_to(int& i, int end) {
  return i < end ? std::optional(i++) : std::nullopt;
}
}  // namespace

TEST_CASE("results come in the order of the items, whatever the work takes") {
  for (const int threads : {1, 2, 7}) {
    Slots slots(threads);
    int i = 0;
    std::vector<int> seen;
    for_each_ordered<int, int>(
        slots, [&] { return count_to(i, 200); },
        [](int& n) {
          std::this_thread::sleep_for(std::chrono::microseconds(n % 7 * 50));
          return n * n;
        },
        [&](int& square) { seen.push_back(square); });
    REQUIRE(seen.size() == 200);
    for (int n = 0; n < 200; ++n)
      REQUIRE(seen[n] == n * n);
  }
}

TEST_CASE("an exception stops the work after the results before it") {
  for (const int threads : {1, 4}) {
    Slots slots(threads);
    int i = 0;
    std::vector<int> seen;
    const auto work = [](int& n) {
      if (n == 20) fail("item {}", n);
      return n;
    };
    CHECK_THROWS_WITH(
        (for_each_ordered<int, int>(
            slots, [&] { return count_to(i, 1000); }, work, [&](int& n) { seen.push_back(n); })),
        "item 20");
    CHECK(seen.size() == 20);
    if (threads == 1) CHECK(i == 21);  // nothing is begun after it
  }
}

TEST_CASE("no more items than slots are worked on at once") {
  Slots slots(3);
  std::atomic<int> now{0}, most{0};
  int i = 0;
  for_each_ordered<int, int>(
      slots, [&] { return count_to(i, 60); },
      [&](int& n) {
        const int running = ++now;
        int old = most;
        while (running > old && !most.compare_exchange_weak(old, running)) {
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        --now;
        return n;
      },
      [](int&) {});
  CHECK(most <= 3);
}

TEST_CASE("slots beyond the first are tokens of the jobserver, and go back") {
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  REQUIRE(::write(fds[1], "ab", 2) == 2);
  {
    Slots slots(8, fmt::format(" -j3 --jobserver-auth={},{}", fds[0], fds[1]));
    REQUIRE(slots.has_jobserver());
    slots.acquire();  // the free one
    slots.acquire();
    slots.acquire();  // now the pipe is empty
    char byte;
    REQUIRE(::fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
    CHECK(::read(fds[0], &byte, 1) == -1);
    std::atomic<bool> got{false};
    std::thread fourth([&] {
      slots.acquire();
      got = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    CHECK_FALSE(got);
    slots.release();
    fourth.join();
    CHECK(got);
    for (int i = 0; i < 3; ++i)
      slots.release();
  }
  char back[3];
  CHECK(::read(fds[0], back, 3) == 2);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST_CASE("an item gets a slot before a thread that would help") {
  Slots slots(1);
  slots.acquire();
  CHECK_FALSE(slots.wanted());
  std::atomic<bool> helped = false;
  std::thread helper([&] {
    const Slots::Hold help(slots, Slots::Use::help);
    helped = true;
  });
  std::thread item([&] { slots.acquire(); });
  while (!slots.wanted())
    std::this_thread::yield();
  slots.release();
  item.join();
  CHECK_FALSE(helped);
  slots.release();
  helper.join();
  CHECK(helped);
}

TEST_CASE("a jobserver that is not there means plain slots") {
  CHECK_FALSE(Slots(2, "").has_jobserver());
  CHECK_FALSE(Slots(2, "-j4 --jobserver-auth=997,998").has_jobserver());
  const TemporaryFolder folder;
  CHECK_FALSE(Slots(2, "--jobserver-auth=fifo:" + folder.path + "/fifo").has_jobserver());
}
