// SPDX-License-Identifier: Apache-2.0
#include "dist/errand_thread.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using vfm::dist::ErrandThread;

namespace {

void pass_milliseconds(int count) {
  std::this_thread::sleep_for(std::chrono::milliseconds(count));
}

}  // namespace

TEST_CASE("errands: done in order, by one other thread") {
  std::vector<int> order;
  std::thread::id first, second;
  {
    ErrandThread thread;
    thread.post([&] { first = std::this_thread::get_id(); });
    for (int i = 0; i < 100; ++i)
      thread.post([&order, i] { order.push_back(i); });
    thread.call([&] {
      second = std::this_thread::get_id();
      order.push_back(100);
    });
    CHECK(order.size() == 101);
    CHECK(std::is_sorted(order.begin(), order.end()));
    CHECK(first == second);
    CHECK(first != std::this_thread::get_id());
    // Its end comes after what it was given.
    thread.post([&] {
      pass_milliseconds(20);
      order.push_back(101);
    });
  }
  CHECK(order.back() == 101);
}

TEST_CASE("errands: what one throws is thrown to who called, and the next is done") {
  ErrandThread thread;
  CHECK_THROWS_WITH(thread.call([] { throw std::runtime_error("the reason"); }), "the reason");
  bool done = false;
  thread.call([&] { done = true; });
  CHECK(done);
}

TEST_CASE("errands: it looks after something without being called, and sleeps between looks") {
  std::atomic<int> looks = 0, left = 0;
  ErrandThread thread;
  thread.call([&] {
    thread.look_after([&] {
      ++looks;
      return left > 0;
    });
  });
  pass_milliseconds(50);
  const int idle = looks;
  CHECK(idle <= 2);  // there was nothing to look after
  thread.post([&] { left = 1; });
  pass_milliseconds(300);
  const int busy = looks;
  CHECK(busy > idle + 10);
  pass_milliseconds(300);
  CHECK(looks - busy < 600);  // not without a break
  left = 0;
  pass_milliseconds(50);
  const int after = looks;
  pass_milliseconds(50);
  CHECK(looks == after);
}
