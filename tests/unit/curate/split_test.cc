// SPDX-License-Identifier: Apache-2.0
#include "curate/split.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <tuple>

#include "base/error.h"

using namespace vfm;
using namespace vfm::curate;
using Catch::Contains;

namespace {

const std::vector<SplitPart> kParts = {{"train", 0.95}, {"val", 0.05}};

/// Of sources in memory, in whatever order.
std::vector<std::uint8_t> assigned(const std::vector<SplitSource>& sources,
                                   const std::vector<SplitPart>& parts, std::uint64_t seed) {
  std::vector<std::uint32_t> drawn;
  for (const SplitSource& source : sources)
    drawn.push_back(split_draw(seed, source.key));
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(drawn[a], sources[a].key) < std::tie(drawn[b], sources[b].key);
  });
  std::vector<std::uint8_t> part_of(sources.size());
  assign_split(
      [&](const auto& use) {
        for (const std::size_t i : order)
          use(i, sources[i]);
      },
      parts, part_of);
  return part_of;
}

std::vector<std::uint64_t> counts(const std::vector<SplitSource>& sources,
                                  const std::vector<SplitPart>& parts, std::uint64_t seed) {
  std::vector<std::uint64_t> samples(parts.size());
  const auto part_of = assigned(sources, parts, seed);
  for (std::size_t i = 0; i < sources.size(); ++i)
    samples[part_of[i]] += sources[i].samples;
  return samples;
}

}  // namespace

TEST_CASE("many sources are cut to the wanted shares") {
  std::vector<SplitSource> sources;
  for (std::uint64_t i = 0; i < 400; ++i)
    sources.push_back({i * 977 + 1, 1 + i % 9});
  const auto samples = counts(sources, kParts, 0);
  const double share =
      static_cast<double>(samples[1]) / static_cast<double>(samples[0] + samples[1]);
  CHECK(share == Approx(0.05).margin(0.005));
  CHECK(assigned(sources, kParts, 0) != assigned(sources, kParts, 1));
}

TEST_CASE("the order of the sources does not matter") {
  std::vector<SplitSource> sources;
  for (std::uint64_t i = 0; i < 50; ++i)
    sources.push_back({i * i + 7, 3 + i % 4});
  const auto forward = assigned(sources, kParts, 3);
  std::reverse(sources.begin(), sources.end());
  auto backward = assigned(sources, kParts, 3);
  std::reverse(backward.begin(), backward.end());
  CHECK(forward == backward);
}

TEST_CASE("tiny sets leave no part empty where that is possible") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(counts({{1, 25}, {2, 25}, {3, 25}, {4, 25}}, kParts, seed)[1] == 25);
    CHECK(counts({{1, 100}, {2, 1}}, kParts, seed) == std::vector<std::uint64_t>{100, 1});
    CHECK(counts({{1, 8}}, kParts, seed) == std::vector<std::uint64_t>{8, 0});
    const std::vector<SplitPart> three = {{"a", 0.98}, {"b", 0.01}, {"c", 0.01}};
    const auto parts = counts({{1, 5}, {2, 5}, {3, 5}}, three, seed);
    CHECK(*std::min_element(parts.begin(), parts.end()) == 5);
  }
  CHECK(assigned({}, kParts, 0).empty());
}

TEST_CASE("sources that have their part keep it, and the others make up the shares") {
  std::vector<SplitSource> sources;
  for (std::uint64_t i = 0; i < 200; ++i)
    sources.push_back({i * 977 + 1, 1 + i % 9});
  const auto before = assigned(sources, kParts, 0);
  for (std::size_t i = 0; i < before.size(); ++i)
    sources[i].part = before[i];
  CHECK(assigned(sources, kParts, 0) == before);
  for (std::uint64_t i = 200; i < 400; ++i)
    sources.push_back({i * 977 + 1, 1 + i % 9});
  const auto after = assigned(sources, kParts, 0);
  CHECK(std::equal(before.begin(), before.end(), after.begin()));
  const auto samples = counts(sources, kParts, 0);
  CHECK(static_cast<double>(samples[1]) / static_cast<double>(samples[0] + samples[1]) ==
        Approx(0.05).margin(0.005));
  // An empty part takes a new one, however small, and none that has its part.
  CHECK(assigned({{1, 50, 0}, {2, 60, 0}, {3, 1}}, kParts, 0) ==
        std::vector<std::uint8_t>{0, 0, 1});
  CHECK(assigned({{1, 50, 0}, {2, 60, 0}}, kParts, 0) == std::vector<std::uint8_t>{0, 0});
}

TEST_CASE("a split is read, or refused with what is wrong") {
  const auto parts = parse_split("train=0.9,val=0.05,test=0.05");
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].name == "val");
  CHECK(parts[1].share == 0.05);
  CHECK(parse_split("all=1").size() == 1);
  for (const char* bad : {"", "train", "train=", "=1", "train=0.5", "train=0.5,val=0.6", "a=0,b=1",
                          "a=-1,b=2", "a=0.5,a=0.5", "A=1", "a/b=1", "a=nan", "a=0.5x,b=0.5"})
    CHECK_THROWS_WITH(parse_split(bad), Contains("--split"));
}
