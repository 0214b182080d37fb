// What several threads ask at once is asked together, and each gets its own.
// SPDX-License-Identifier: Apache-2.0
#include "workers/gathered.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

using namespace vfm::workers;

namespace {

struct Call {
  int asked = 0, answer = 0;
};

/// Has each of so many threads do it, with its number, and waits for all.
void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back(work, t);
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace

TEST_CASE("calls of many threads are each done once, together up to the weight") {
  Gathered<Call> gathered(2, 4);
  std::atomic<int> leads{0}, at_once{0}, wrong{0};
  in_threads(8, [&](int t) {
    for (int i = 0; i < 50; ++i) {
      Call own{100 * t + i};
      gathered.run(own, 1 + static_cast<std::size_t>(i % 2), [&](const auto& take) {
        ++leads;
        if (++at_once > 2) ++wrong;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        const std::vector<Call*> calls = take();
        if (calls.size() > 4) ++wrong;
        for (Call* const call : calls)
          call->answer += call->asked + 1;
        --at_once;
      });
      if (own.answer != own.asked + 1) ++wrong;
    }
  });
  CHECK(wrong == 0);
  CHECK(leads < 8 * 50);
}

TEST_CASE("what is heavier than allowed goes alone") {
  Gathered<Call> gathered(1, 4);
  Call own{1};
  gathered.run(own, 9, [&](const auto& take) {
    CHECK(take().size() == 1);
    CHECK(take().empty());
  });
}

TEST_CASE("an error is that of all that were asked together, and of nobody else") {
  Gathered<Call> gathered(1, 8);
  std::atomic<int> failed{0}, done{0};
  in_threads(6, [&](int t) {
    Call own{t};
    try {
      gathered.run(own, 1, [&](const auto& take) {
        for (Call* const call : take())
          if (call->asked == 3) throw std::runtime_error("three");
      });
      ++done;
    } catch (const std::runtime_error&) {
      ++failed;
    }
  });
  CHECK(failed >= 1);
  CHECK(failed + done == 6);
  // Before anything was taken it is the caller's own.
  Call own;
  CHECK_THROWS_AS(gathered.run(own, 1, [](const auto&) { throw std::logic_error("no worker"); }),
                  std::logic_error);
  gathered.run(own, 1, [](const auto& take) { CHECK(take().size() == 1); });
}

TEST_CASE("what workers died of is told of the call at fault alone") {
  Gathered<Call> gathered(1, 8);
  std::atomic<int> failed{0}, done{0}, wrong{0};
  in_threads(6, [&](int t) {
    Call own{t};
    try {
      gathered.run(own, 1, [&](const auto& take) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::vector<Call*> calls = take();
        for (Call* const call : calls)
          if (call->asked == 3) vfm::fail_as(vfm::Cause::crash, "{} at once", calls.size());
      });
      ++done;
    } catch (const vfm::Error& error) {
      ++failed;
      if (t != 3 || error.what() != std::string("1 at once")) ++wrong;
    }
  });
  CHECK(failed == 1);
  CHECK(done == 5);
  CHECK(wrong == 0);
}
