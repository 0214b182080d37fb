// Sources come in their shares at any moment, and sets in orders of their own.
// SPDX-License-Identifier: Apache-2.0
#include "data/blend_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/interleaving.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::data;

namespace {

/// Of each source how far from its share of the first n it ever is, up to `count`.
double farthest(const std::vector<std::uint64_t>& shares, std::uint64_t count) {
  const Interleaving sources(shares);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  Interleaving::Walk walk(sources, 0);
  std::vector<std::uint64_t> seen(shares.size());
  double most = 0;
  for (std::uint64_t n = 1; n <= count; ++n) {
    ++seen[walk.next()];
    for (std::size_t i = 0; i < shares.size(); ++i)
      most =
          std::max(most, std::abs(static_cast<double>(seen[i]) -
                                  static_cast<double>(n) * static_cast<double>(shares[i]) / all));
  }
  CHECK(sources.counts(count) == seen);
  return most;
}

/// Samples of an epoch, in order.
std::vector<std::uint64_t> epoch_of(const EpochOrder& order, std::uint32_t epoch) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t block = 0; block < order.blocks(); ++block)
    for (const std::uint64_t i : order.block(epoch, block))
      all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("each source has its share of any number of first things, rounded up or down") {
  for (const std::vector<std::uint64_t>& shares : {std::vector<std::uint64_t>{1},
                                                   {1, 1},
                                                   {1000, 1},
                                                   {3, 7},
                                                   {1, 1, 1},
                                                   {5, 3, 2},
                                                   {1, 999, 37},
                                                   {1'000'000'007, 998'244'353, 3}}) {
    INFO(shares.size());
    CHECK(farthest(shares, 20'000) < 1);
  }
  const Random random(5, Purpose::test);
  std::uint64_t at = 0;
  for (const std::size_t count : {4, 5, 8, 17, 100})
    for (int round = 0; round < 20; ++round) {
      std::vector<std::uint64_t> shares(count);
      for (std::uint64_t& share : shares)
        share = 1 + static_cast<std::uint64_t>(std::pow(10, 6 * random.uniform(at++)));
      CHECK(farthest(shares, 2000) < 2);
    }
  // One of nine that has nearly all; and shares that grow as Fibonacci's numbers.
  CHECK(farthest({900, 10, 10, 10, 10, 10, 10, 10, 10, 20}, 5000) < 2);
  CHECK(farthest({1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144}, 5000) < 2);
}

TEST_CASE("a place is reached directly, wherever it is, and whole shares are whole") {
  const std::vector<std::uint64_t> shares = {1000, 1, 200, 34};
  const std::uint64_t all = 1235;
  const Interleaving sources(shares);
  for (const std::uint64_t times : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{1} << 50}) {
    std::vector<std::uint64_t> expected;
    for (const std::uint64_t share : shares)
      expected.push_back(times * share);
    CHECK(sources.counts(times * all) == expected);
  }
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{777}, std::uint64_t{1} << 60}) {
    Interleaving::Walk walk(sources, begin);
    std::vector<std::uint64_t> counts = sources.counts(begin);
    for (int i = 1; i <= 3000; ++i) {
      ++counts[walk.next()];
      REQUIRE(counts == sources.counts(begin + static_cast<std::uint64_t>(i)));
    }
  }
  // Thousand to one: one in each 1001.
  const Interleaving images(std::vector<std::uint64_t>{1000, 1});
  for (std::uint64_t n = 0; n < 50; ++n)
    CHECK(images.counts(1001 * n) == std::vector<std::uint64_t>{1000 * n, n});
}

TEST_CASE("weights become whole numbers, exactly, or are refused") {
  const std::vector<std::uint64_t> ones(3, 1);
  const auto shares = [&](const std::vector<double>& weights) {
    return whole_shares(weights, std::span(ones).first(weights.size()), "data.weights");
  };
  using Shares = std::vector<std::uint64_t>;
  CHECK(shares({1000, 1}) == Shares{1000, 1});
  CHECK(shares({0.7, 0.3}) == Shares{7, 3});
  CHECK(shares({0.1, 0.02, 0.003}) == Shares{100, 20, 3});
  CHECK(shares({2e9, 1e9}) == Shares{2, 1});
  CHECK(shares({1e-9, 1}) == Shares{1, 1'000'000'000});
  CHECK(usage_error([&] { shares({1, 0}); }).find("numbers above 0") != std::string::npos);
  CHECK(usage_error([&] {
          shares({1, -2});
        }).find("'data.weights' is [1, -2]") != std::string::npos);
  CHECK(!usage_error([&] { shares({1, 1.0 / 3}); }).empty());
  CHECK(!usage_error([&] { shares({1e-9, 1e14}); }).empty());
  const std::vector<std::uint64_t> sizes = {10, 3, 4'000'000'000};
  CHECK(whole_shares(std::vector<double>{0.5, 2, 1}, sizes, "data.repeats") ==
        Shares{5, 6, 4'000'000'000});
  const std::vector<std::uint64_t> vast = {std::uint64_t{1} << 50, 3, 7};
  CHECK(usage_error([&] {
          whole_shares(std::vector<double>{10000, 1.5, 1}, vast, "data.repeats");
        }).find("too far apart") != std::string::npos);
}

TEST_CASE(
    "each set of a blend is gone through in an order of its own, once before it comes again") {
  const std::vector<std::uint64_t> sizes = {5, 1000, 40'000};
  const std::vector<double> weights = {1, 2, 7};
  const BlendShares shares = shares_of_weights(weights, sizes);
  CHECK(shares.epoch == 41'005);
  const auto order = order_of_blend(sizes, shares, 11);
  REQUIRE(order->blocks() == 3);
  CHECK(order->block(1, 1) == order_of_blend(sizes, shares, 11)->block(1, 1));
  CHECK(order->block(1, 1) != order->block(0, 1));
  CHECK(order->block(0, 1) != order_of_blend(sizes, shares, 12)->block(0, 1));
  CHECK(order->block(0, 2).size() == 41'005 - 2 * kBlock);
  std::vector<std::vector<std::uint64_t>> of_set(3);  // over four epochs
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
    for (const std::uint64_t i : epoch_of(*order, epoch)) {
      REQUIRE(i < 41'005);
      of_set[i < 5 ? 0 : i < 1005 ? 1 : 2].push_back(i);
    }
  std::uint64_t first = 0;
  for (std::size_t set = 0; set < 3; ++set) {
    CHECK(std::abs(static_cast<double>(of_set[set].size()) - 4 * 41'005 * weights[set] / 10) < 1);
    std::vector<std::uint64_t> before;
    for (std::size_t at = 0; at + sizes[set] <= of_set[set].size(); at += sizes[set]) {
      const auto begin = of_set[set].begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<std::uint64_t> pass(begin, begin + static_cast<std::ptrdiff_t>(sizes[set]));
      const std::set<std::uint64_t> different(pass.begin(), pass.end());
      REQUIRE(different.size() == sizes[set]);
      CHECK(*different.begin() == first);
      if (set > 0) CHECK(pass != before);  // of five two passes may be alike
      before = pass;
    }
    first += sizes[set];
  }
  // Sets of one size are not shuffled alike.
  const std::vector<std::uint64_t> twins = {600, 600};
  const std::vector<double> even = {1, 1};
  std::vector<std::uint64_t> one, other;
  for (const std::uint64_t i :
       epoch_of(*order_of_blend(twins, shares_of_weights(even, twins), 3), 0))
    (i < 600 ? one : other).push_back(i % 600);
  CHECK(one != other);
}

TEST_CASE("repeats say how often a set comes in an epoch, also in parts") {
  const std::vector<std::uint64_t> sizes = {10, 3, 7};
  const BlendShares shares = shares_of_repeats(std::vector<double>{0.5, 2, 1}, sizes);
  CHECK(shares.epoch == 18);
  const auto order = order_of_blend(sizes, shares, 1);
  std::map<std::uint64_t, int> seen;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::map<int, int> of_set;
    for (const std::uint64_t i : epoch_of(*order, epoch)) {
      ++of_set[i < 10 ? 0 : i < 13 ? 1 : 2];
      ++seen[i];
    }
    CHECK(of_set == std::map<int, int>{{0, 5}, {1, 6}, {2, 7}});
  }
  for (std::uint64_t i = 0; i < 20; ++i)
    CHECK(seen[i] == (i < 10 ? 1 : i < 13 ? 4 : 2));  // the halves of two epochs are a whole
}

TEST_CASE("a billion images beside a million videos: any block is found at once") {
  const std::vector<std::uint64_t> sizes = {1'000'000'000, 1'000'000};
  for (const bool weights : {true, false}) {
    const BlendShares shares = weights ? shares_of_weights(std::vector<double>{1000, 1}, sizes)
                                       : shares_of_repeats(std::vector<double>{1, 1}, sizes);
    CHECK(shares.shares == std::vector<std::uint64_t>{1000, 1});
    CHECK(shares.epoch == 1'001'000'000);
    const auto order = order_of_blend(sizes, shares, 1);
    const auto block = order->block(3, order->blocks() - 2);
    const auto videos = std::ranges::count_if(block, [](std::uint64_t i) { return i >= 1e9; });
    CHECK((videos == 16 || videos == 17));
    CHECK(std::set<std::uint64_t>(block.begin(), block.end()).size() == kBlock);
  }
}
