// SPDX-License-Identifier: Apache-2.0
#include "data/packing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "data/order.h"

using namespace vfm;
using namespace vfm::data;

namespace {

/// Half images, half videos of 17 to 121 frames (steps of 4), about 256 x 256 pixels in five aspect
/// ratios; a token is 2 x 2 pixels of a latent that is 4 times smaller in time, 8 in space.
std::vector<std::int64_t> mixed_set(std::size_t samples, double images) {
  constexpr int kShapes[5][2] = {{16, 16}, {12, 20}, {20, 12}, {14, 18}, {18, 14}};
  const Random random(1, Purpose::test);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto& shape = kShapes[random.bits(3 * i) % 5];
    const bool image = random.uniform(3 * i + 1) < images;
    const std::int64_t frames = image ? 1 : 5 + random.bits(3 * i + 2) % 27;
    tokens.push_back(shape[0] * shape[1] * frames);
  }
  return tokens;
}

/// What the header says, read literally: a list as the window, searched from end to end.
std::vector<Pack> plan_slowly(const std::vector<std::int64_t>& tokens, const PackOptions& options) {
  std::vector<std::size_t> window;
  std::size_t next = 0;
  const auto fill = [&] {
    while (window.size() < static_cast<std::size_t>(options.window) && next < tokens.size())
      window.push_back(next++);
  };
  std::vector<Pack> packs;
  for (fill(); !window.empty();) {
    Pack pack = {window.front()};
    window.erase(window.begin());
    fill();
    std::int64_t room = options.tokens - tokens[pack[0]];
    for (;;) {
      auto best = window.end();
      for (auto it = window.begin(); it != window.end(); ++it)
        if (tokens[*it] <= room && (best == window.end() || tokens[*it] > tokens[*best])) best = it;
      if (best == window.end()) break;
      room -= tokens[*best];
      pack.push_back(*best);
      window.erase(best);
      fill();
    }
    packs.push_back(pack);
  }
  return packs;
}

bool is_usage_error(const std::vector<std::int64_t>& tokens, const PackOptions& options) {
  try {
    plan_packs(tokens, options);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage;
  }
  return false;
}

}  // namespace

TEST_CASE("the oldest opens the pack, then the longest that fits, of equals the oldest") {
  const std::vector<std::int64_t> tokens = {3, 5, 2, 5, 1, 9};
  const std::vector<Pack> expected = {{0, 1, 2}, {3, 4}, {5}};
  CHECK(plan_packs(tokens, {.tokens = 10, .window = 4}) == expected);
  CHECK(plan_packs(tokens, {.tokens = 10, .window = 1}) ==
        std::vector<Pack>{{0, 1, 2}, {3, 4}, {5}});
  CHECK(plan_packs(tokens, {.tokens = 10, .window = 100}) ==
        std::vector<Pack>{{0, 1, 2}, {3, 4}, {5}});
  CHECK(plan_packs({}, {}).empty());
}

TEST_CASE("the plan is that of a literal search") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Random random(seed, Purpose::test);
    std::vector<std::int64_t> tokens;
    for (std::uint64_t i = 0; i < 300; ++i)
      tokens.push_back(1 + random.bits(i) % (seed % 2 == 0 ? 7 : 500));
    for (const int window : {1, 3, 64, 1000}) {
      const PackOptions options{.tokens = 500, .window = window};
      CHECK(plan_packs(tokens, options) == plan_slowly(tokens, options));
    }
  }
}

TEST_CASE("a mixed image and video set is packed to 98 % with a window of 64") {
  for (const double images : {0.5, 0.8}) {
    const auto tokens = mixed_set(16384, images);
    const PackOptions options{.tokens = 8192, .window = 64};
    const auto packs = plan_packs(tokens, options);
    CHECK(pack_stats(tokens, packs, options).fill >= 0.98);
    std::vector<std::size_t> all;
    for (const Pack& pack : packs) {
      std::int64_t sum = 0;
      for (const std::size_t i : pack)
        sum += tokens[i];
      CHECK(sum <= options.tokens);
      all.insert(all.end(), pack.begin(), pack.end());
    }
    std::sort(all.begin(), all.end());
    std::vector<std::size_t> expected(tokens.size());
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    CHECK(all == expected);
  }
}

TEST_CASE("many short samples fill a pack beyond the window") {
  const std::vector<std::int64_t> tokens(4000, 48);
  const PackOptions options{.tokens = 48 * 200, .window = 8};
  const auto packs = plan_packs(tokens, options);
  CHECK(packs.size() == 20);
  CHECK(pack_stats(tokens, packs, options).fill == Approx(1));
  CHECK(pack_stats(tokens, packs, options).square_spread == Approx(0).margin(1e-6));
}

TEST_CASE("pack statistics by hand") {
  const std::vector<std::int64_t> tokens = {6, 2, 4};
  const std::vector<Pack> packs = {{0, 1}, {2}};  // squares: 40 and 16
  const PackStats stats = pack_stats(tokens, packs, {.tokens = 8});
  CHECK(stats.fill == Approx(12.0 / 16));
  CHECK(stats.square_spread == Approx(12.0 / 28));
}

TEST_CASE("lengths and options that cannot be are refused") {
  CHECK(is_usage_error({5, 11}, {.tokens = 10}));
  CHECK(is_usage_error({0}, {.tokens = 10}));
  CHECK(is_usage_error({-4}, {.tokens = 10}));
  CHECK(is_usage_error({1}, {.tokens = 0}));
  CHECK(is_usage_error({1}, {.tokens = 10, .window = 0}));
  CHECK(is_usage_error({1}, {.tokens = 10, .window = -1}));
}

TEST_CASE("an epoch visits every sample once, in an order of its own") {
  const auto first = epoch_order(1000, 7, 0), second = epoch_order(1000, 7, 1);
  CHECK(first == epoch_order(1000, 7, 0));
  CHECK(first != second);
  CHECK(first != epoch_order(1000, 8, 0));
  CHECK(first != epoch_order(1000, 7, 0, 1));
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    CHECK(sorted[i] == i);
  // A fair shuffle leaves about one fixed point.
  int fixed = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    fixed += first[i] == i;
  CHECK(fixed < 8);
}

TEST_CASE("the packs of an epoch hold its samples in the shuffled order") {
  const std::vector<std::int64_t> tokens = {4, 4, 4, 4, 4, 4, 4};
  const auto order = epoch_order(7, 3, 2);
  const auto packs = epoch_packs(tokens, {.tokens = 8, .window = 4}, 3, 2);
  std::vector<std::uint64_t> flat;
  for (const Pack& pack : packs)
    flat.insert(flat.end(), pack.begin(), pack.end());
  CHECK(packs.size() == 4);
  CHECK(flat == order);
}
