// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "support/epoch_packs.h"

using namespace vfm;
using namespace vfm::data;

namespace {

KeyedPermutation permutation(std::uint64_t count, std::uint64_t seed, std::uint32_t epoch) {
  return {count, Random(seed, Purpose::data_order, epoch)};
}

std::vector<std::uint64_t> all_of(const KeyedPermutation& order, std::uint64_t count) {
  std::vector<std::uint64_t> places(count);
  for (std::uint64_t i = 0; i < count; ++i)
    places[i] = order.at(i);
  return places;
}

bool each_once(std::vector<std::uint64_t> places) {
  std::ranges::sort(places);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] != i) return false;
  return true;
}

/// Half images of 256 tokens, half videos of 768 to 4096.
std::vector<std::int64_t> mixed_lengths(std::size_t count) {
  const Random random(1, Purpose::test);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(256 * (random.bits(2 * i) % 2 == 0 ? 1 : 3 + random.bits(2 * i + 1) % 14));
  return tokens;
}

LengthsOf lengths_of(const std::vector<std::int64_t>& tokens) {
  return [&](std::span<const std::uint64_t> samples) {
    std::vector<std::int64_t> found;
    for (const std::uint64_t i : samples)
      found.push_back(tokens[i]);
    return found;
  };
}

}  // namespace

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

TEST_CASE("a keyed permutation takes each place once, of any number of them") {
  for (const std::uint64_t count :
       {1, 2, 3, 4, 5, 7, 8, 9, 31, 1000, 16384, 16385, 65537, 100'000}) {
    INFO(count);
    const auto order = all_of(permutation(count, 3, 1), count);
    CHECK(each_once(order));
    if (count < 1000) continue;
    CHECK(order != all_of(permutation(count, 3, 2), count));
    CHECK(order != all_of(permutation(count, 4, 1), count));
  }
  // Of a number that fits no memory as well: all below it, none twice.
  const std::uint64_t many = 123'456'789'012;
  std::set<std::uint64_t> seen;
  const KeyedPermutation order = permutation(many, 3, 1);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    seen.insert(order.at(i));
    seen.insert(order.at(many - 1 - i));
  }
  CHECK(seen.size() == 10'000);
  CHECK(*seen.rbegin() < many);
}

TEST_CASE("a keyed permutation is as a fair shuffle in what can be counted") {
  constexpr std::uint64_t kCount = 100'000;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    const auto order = all_of(permutation(kCount, 11, epoch), kCount);
    // About one stays where it is, and about one in front of its neighbour.
    int fixed = 0, neighbours = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      fixed += order[i] == i;
      neighbours += i > 0 && order[i] == order[i - 1] + 1;
    }
    CHECK(fixed < 8);
    CHECK(neighbours < 8);
    // Every hundredth of the places has about as many of every hundredth of the samples: the sum
    // over 10,000 cells of (found - 10)^2 / 10 is about 9,801, with a standard deviation of 140.
    std::vector<int> cells(10'000);
    for (std::size_t i = 0; i < order.size(); ++i)
      ++cells[i / 1000 * 100 + order[i] / 1000];
    double chi = 0;
    for (const int found : cells)
      chi += (found - 10.0) * (found - 10.0) / 10;
    CHECK(std::abs(chi - 9801) < 5 * 140);
  }
}

TEST_CASE("few samples have the packs that they had before there were blocks") {
  const auto tokens = mixed_lengths(kBlock);
  const PackingOptions blocks{.tokens = 8192}, whole{.tokens = 8192, .packing = Packing::balanced};
  CHECK(block_count(kBlock, Packing::blocks) == 1);
  CHECK(epoch_packs(tokens, blocks, 5, 3) == epoch_packs(tokens, whole, 5, 3));
  CHECK(block_count(kBlock + 1, Packing::blocks) == 2);
  CHECK(block_count(1'000'000'000, Packing::balanced) == 1);
}

TEST_CASE("an epoch of blocks has each sample once, and a block is planned by itself") {
  const std::size_t count = 3 * kBlock + 100;
  const auto tokens = mixed_lengths(count);
  const PackingOptions options{.tokens = 8192};
  const auto epoch = epoch_packs(tokens, options, 5, 3);
  std::vector<std::uint64_t> seen;
  for (const Pack& pack : epoch)
    seen.insert(seen.end(), pack.begin(), pack.end());
  REQUIRE(seen.size() == count);
  CHECK(each_once(seen));
  // Nothing is asked for but the lengths of the block's own samples.
  std::size_t asked = 0;
  const auto lengths = [&](std::span<const std::uint64_t> samples) {
    asked += samples.size();
    return lengths_of(tokens)(samples);
  };
  const auto third = block_packs(count, lengths, options, 5, 3, 2);
  CHECK(asked == kBlock);
  CHECK(std::search(epoch.begin(), epoch.end(), third.begin(), third.end()) != epoch.end());
  CHECK(block_packs(count, lengths, options, 5, 3, 3).size() < 100);
  CHECK(block_packs(count, lengths, options, 5, 4, 2) != third);
}

TEST_CASE("packs of blocks are full, and as even as those of whole epochs") {
  const auto tokens = mixed_lengths(8 * kBlock);
  const PackingOptions blocks{.tokens = 8192}, whole{.tokens = 8192, .packing = Packing::balanced};
  const PackStats now = pack_stats(tokens, epoch_packs(tokens, blocks, 0, 0), blocks);
  const PackStats before = pack_stats(tokens, epoch_packs(tokens, whole, 0, 0), whole);
  CHECK(now.fill > 0.985);
  CHECK(now.square_spread < 1.25 * before.square_spread);
}
