// Worker slots, the jobserver protocol, and ordered parallel work.
// SPDX-License-Identifier: Apache-2.0
#include "share/slots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/run_end.h"
#include "share/ordered.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::share;

namespace {
std::optional<int> count_to(int& i, int end) {
  return i < end ? std::optional(i++) : std::nullopt;
}
void raise_to(std::atomic<int>& most, int value) {
  for (int old = most; value > old && !most.compare_exchange_weak(old, value);) {
  }
}
/// Whether there is a slot now, of plain ones, for which nobody waits: a thread gets one, or waits.
bool is_free(Slots& slots) {
  std::atomic<bool> over = false;
  std::atomic<bool> got = false;
  std::thread thread([&] {
    const Slots::Hold hold(slots, Slots::Use::item, &over);
    got = static_cast<bool>(hold);
  });
  while (!got && !slots.wanted())
    std::this_thread::yield();
  over = true;
  thread.join();
  return got;
}
/// All of `most` are in it at the same time, or that takes too long.
class Meeting {
 public:
  explicit Meeting(int most) : most_(most) {}
  bool come() {
    ++here_;
    for (int i = 0; i < 20'000 && here_ < most_; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return here_ >= most_;
  }

 private:
  const int most_;
  std::atomic<int> here_ = 0;
};
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
        raise_to(most, ++now);
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
    while (!slots.wanted())
      std::this_thread::yield();
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

TEST_CASE("who is away has no slot meanwhile, and takes one again") {
  Slots slots(1);
  {
    const Slots::Away nothing;  // without a Hold
    const Slots::Hold hold(slots);
    CHECK_FALSE(is_free(slots));
    {
      const Slots::Away away;
      CHECK(is_free(slots));
      {
        const Slots::Away again;
        const Slots::Back back;
        CHECK_FALSE(is_free(slots));
      }
      CHECK(is_free(slots));
      // One of another thread is not this one's.
      std::thread([&] {
        const Slots::Hold other(slots);
        const Slots::Away other_away;
      }).join();
    }
    CHECK_FALSE(is_free(slots));
    const Slots::Back back;
    CHECK_FALSE(is_free(slots));
  }
  CHECK(is_free(slots));
  // The slot is taken by another thread meanwhile: it waits for that.
  std::atomic<bool> given = false;
  std::optional<Slots::Hold> hold(std::in_place, slots);
  std::thread other;
  {
    const Slots::Away away;
    std::atomic<bool> got = false;
    other = std::thread([&] {
      slots.acquire();
      got = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      given = true;
      slots.release();
    });
    while (!got)
      std::this_thread::yield();
  }
  CHECK(given);
  other.join();
  hold.reset();
  CHECK(is_free(slots));
}

TEST_CASE("a stop while a thread is away leaves it without a slot, and none is lost") {
  Slots slots(1);
  {
    const Slots::Hold hold(slots);
    {
      const Slots::Away away;
      CHECK_THROWS_AS(throw_output_error(ENOSPC, "cannot write 'x'"), Stopped);
    }
    CHECK_THROWS_AS(slots.acquire(), Stopped);
    forget_run_end();
    CHECK(is_free(slots));
  }
  CHECK(is_free(slots));
  slots.acquire();
  CHECK_FALSE(is_free(slots));
  slots.release();
}

TEST_CASE("one slot is enough for many items that are away, and for the parts of an item") {
  Slots slots(1);
  slots.add_away(7);
  CHECK(slots.items_at_once() == 8);
  Meeting eight(8);
  std::atomic<int> computing{0}, most{0}, met{0};
  const auto compute = [&] {
    raise_to(most, ++computing);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --computing;
  };
  int i = 0;
  for_each_ordered<int, int>(
      slots, [&] { return count_to(i, 24); },
      [&](int& n) {
        compute();
        if (const Slots::Away away; eight.come()) ++met;
        compute();
        return n;
      },
      [](int&) {});
  CHECK(met == 24);
  CHECK(most == 1);
  // An item whose parts have the slots: it has none itself. Two of them have one slot together.
  Meeting six(6);
  i = 0;
  for_each_ordered<int, int>(
      slots, [&] { return count_to(i, 2); },
      [&](int& n) {
        const Slots::Away away;
        Slots parts(slots, 3);
        int part = 0;
        for_each_ordered<int, int>(
            parts, [&] { return count_to(part, 6); },
            [&](int& p) {
              compute();
              if (const Slots::Away away_too; six.come()) ++met;
              return p;
            },
            [](int&) {});
        return n;
      },
      [](int&) {});
  CHECK(met == 24 + 12);
  CHECK(most == 1);
}

TEST_CASE("a token goes back to the jobserver while its thread is away") {
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  REQUIRE(::write(fds[1], "a", 1) == 1);
  REQUIRE(::fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
  char byte = 0;
  {
    Slots slots(8, fmt::format(" -j2 --jobserver-auth={},{}", fds[0], fds[1]));
    slots.acquire();  // the free one, which no token is for
    {
      const Slots::Hold hold(slots);
      CHECK(::read(fds[0], &byte, 1) == -1);
      {
        const Slots::Away away;
        CHECK(::read(fds[0], &byte, 1) == 1);
        CHECK(byte == 'a');
        CHECK(::read(fds[0], &byte, 1) == -1);
        REQUIRE(::write(fds[1], "b", 1) == 1);
      }
      CHECK(::read(fds[0], &byte, 1) == -1);
    }
    CHECK(::read(fds[0], &byte, 1) == 1);
    CHECK(byte == 'b');
    slots.release();
  }
  CHECK(::read(fds[0], &byte, 1) == -1);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST_CASE("a jobserver that is not there means plain slots") {
  CHECK_FALSE(Slots(2, "").has_jobserver());
  CHECK_FALSE(Slots(2, "-j4 --jobserver-auth=997,998").has_jobserver());
  const TemporaryFolder folder;
  CHECK_FALSE(Slots(2, "--jobserver-auth=fifo:" + folder.path + "/fifo").has_jobserver());
}

TEST_CASE("descriptors that were not given are no jobserver, whatever gets their numbers later") {
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  const auto flags = fmt::format("-j4 --jobserver-auth={},{}", fds[0], fds[1]);
  CHECK(Slots::given_jobserver(flags) == flags);
  ::close(fds[0]);
  ::close(fds[1]);
  CHECK(Slots::given_jobserver(flags).empty());
  CHECK(Slots::given_jobserver("-j4").empty());
  CHECK(Slots::given_jobserver("--jobserver-auth=fifo:/x/y") == "--jobserver-auth=fifo:/x/y");
}
