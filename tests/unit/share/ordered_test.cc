// Ordered parallel work: how much waits, and who comes first.
// SPDX-License-Identifier: Apache-2.0
#include "share/ordered.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::share;

namespace {

using Weight = std::function<std::size_t(const int&)>;

/// How many of `items` are done while the first one is not, which lasts until `expected` are, and
/// then a little longer.
int done_beside_the_first(int threads, int items, int expected, const Weight& weight) {
  Slots slots(threads);
  std::atomic<int> others = 0;
  int beside = 0, i = 0;
  std::vector<int> order;
  for_each_ordered<int, int>(
      slots, [&] { return i < items ? std::optional(i++) : std::nullopt; },
      [&](int& n) {
        if (n != 0) return ++others, n;
        for (int waits = 0; waits < 3000 && others < expected; ++waits)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        beside = others;
        return n;
      },
      [&](int& n) { order.push_back(n); }, weight);
  CHECK(order.size() == static_cast<std::size_t>(items));
  CHECK(std::is_sorted(order.begin(), order.end()));
  return beside;
}

}  // namespace

TEST_CASE("results are counted as they are ready in their order, and as they are handed on") {
  Slots slots(6);
  const auto flow = std::make_shared<OrderedFlow>();
  slots.set_flow(flow);
  CHECK(Slots(slots, 2).flow() == nullptr);
  const auto await = [](const std::function<bool()>& what) {
    for (int waits = 0; waits < 3000 && !what(); ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(what());
  };
  std::atomic<int> behind = 0;
  std::int64_t ready = 0, handed = -1;
  int i = 0;
  for_each_ordered<int, int>(
      slots, [&] { return i < 6 ? std::optional(i++) : std::nullopt; },
      [&](int& n) {
        if (n > 2) ++behind;
        if (n != 2) return n;
        await([&] { return behind == 3 && flow->ready == 2; });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ready = flow->ready;
        return n;
      },
      [&](int& n) {
        if (n != 0) return;
        await([&] { return flow->ready == 6; });
        handed = flow->handed;
      });
  CHECK(ready == 2);
  CHECK(handed == 0);
  CHECK((flow->ready == 6 && flow->handed == 6));
}

TEST_CASE("an item that takes long holds up no thread where results are small") {
  CHECK(done_beside_the_first(4, 3000, 2999, [](const int&) { return 2000; }) == 2999);
  // As many as are let in whatever they weigh.
  CHECK(done_beside_the_first(4, 100, 7, nullptr) == 7);
  CHECK(done_beside_the_first(4, 100, 7, [](const int&) { return kOrderedBytes; }) == 7);
}

TEST_CASE("results that wait weigh no more than is said, and what was under way") {
  constexpr int kThreads = 3;
  const int most =
      done_beside_the_first(kThreads, 200, 20, [](const int&) { return kOrderedBytes / 20; });
  // Less than all twenty let another one in.
  CHECK(most >= 20);
  CHECK(most <= 20 + kThreads);
}

TEST_CASE("the first item without a slot gets the next one") {
  const TemporaryFolder folder;
  const PipeBoard::Stage no_pipes{.name = "stage", .input = -1, .output = -1};
  // One slot, for which four threads wait, each of which has taken an item.
  const auto board = std::make_shared<PipeBoard>(folder.path + "/slots", 1, 1, no_pipes);
  Slots slots(4, "", board);
  std::vector<int> begun;
  int i = 0;
  for_each_ordered<int, int>(
      slots, [&] { return i < 200 ? std::optional(i++) : std::nullopt; },
      [&](int& n) {
        begun.push_back(n);
        return n;
      },
      [](int&) {}, [](const int&) { return 1; });
  REQUIRE(begun.size() == 200);
  CHECK(std::is_sorted(begun.begin(), begun.end()));
}

TEST_CASE(
    "an item is given back when it is done, and an error of its weight is as one of its work") {
  using Item = std::pair<int, std::shared_ptr<int>>;
  Slots slots(2);
  const auto held = std::make_shared<int>(1);
  int i = 0;
  std::atomic<long> most_held = 0;
  std::atomic<int> others = 0;
  std::vector<int> seen;
  const auto work = [&](Item& item) {
    // The first one waits: results pile up, items do not.
    for (int waits = 0; item.first == 0 && waits < 3000 && others < 40; ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ++others;
    if (const long now = item.second.use_count(); now > most_held) most_held = now;
    return item.first;
  };
  CHECK_THROWS_WITH(
      (for_each_ordered<Item, int>(
          slots, [&] { return i < 60 ? std::optional(Item(i++, held)) : std::nullopt; }, work,
          [&](int& n) { seen.push_back(n); },
          [](const int& n) -> std::size_t {
            if (n == 45) fail("result {}", n);
            return 100;
          })),
      "result 45");
  CHECK(seen.size() == 45);
  CHECK(most_held <= 5);  // of two threads, one that is read, and this test's own
  CHECK(held.use_count() == 1);
}

TEST_CASE("threads that the system refuses are an error, which says what to do") {
  // Stacks for which no machine has room.
  pthread_attr_t attributes;
  REQUIRE(::pthread_getattr_default_np(&attributes) == 0);
  pthread_attr_t huge = attributes;
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 52) == 0);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  Slots slots(3);
  CHECK_THROWS_WITH(
      (for_each_ordered<int, int>(
          slots, [] { return std::optional<int>(); }, [](int& n) { return n; }, [](int&) {})),
      Catch::Contains("cannot start 3 threads") && Catch::Contains("smaller -j"));
  CHECK(::pthread_setattr_default_np(&attributes) == 0);
  ::pthread_attr_destroy(&attributes);
}

TEST_CASE("what values hold is counted with all that they point to") {
  CHECK(held_bytes(std::string(100, 'x')) == 100);
  CHECK(held_bytes(std::vector<float>(10)) == 40);
  CHECK(held_bytes(std::vector<std::vector<float>>(2, std::vector<float>(10))) ==
        80 + 2 * sizeof(std::vector<float>));
  CHECK(held_bytes(Json(7)) == 0);
  const Json text = std::string(1000, 'x');
  CHECK(held_bytes(text) >= 1000);
  const Json list = {text, text, {{"key", text}}};
  CHECK(held_bytes(list) >= 3000);
  CHECK(held_bytes(list) <= 3500);
}
