// SPDX-License-Identifier: Apache-2.0
#include "base/philox.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

using namespace vfm;

// Known answers from the Random123 distribution (kat_vectors, philox4x32 10).
TEST_CASE("philox4x32 gives the published answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("an element does not depend on where the drawing began") {
  const Random random(7, Purpose::noise, 3, 99);
  std::vector<float> all(1001);
  random.fill_normal(all);
  for (std::uint64_t first : {0, 1, 2, 3, 5, 500}) {
    std::vector<float> part(17);
    random.fill_normal(part, first);
    for (std::size_t i = 0; i < part.size(); ++i)
      REQUIRE(part[i] == all[first + i]);
    REQUIRE(random.normal(first) == all[first]);
  }
}

TEST_CASE("streams of different purpose, step, key or seed differ") {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed : {0, 1})
    for (Purpose purpose : {Purpose::noise, Purpose::sigma})
      for (std::uint32_t step : {0, 1})
        for (std::uint64_t key : {0, 1})
          first.insert(Random(seed, purpose, step, key).bits(0));
  CHECK(first.size() == 16);
}

TEST_CASE("normals have the moments of a normal") {
  std::vector<float> values(200000);
  Random(1, Purpose::test).fill_normal(values);
  double sum = 0, squares = 0, fourth = 0;
  for (double v : values)
    sum += v, squares += v * v, fourth += v * v * v * v;
  const double n = static_cast<double>(values.size());
  CHECK(sum / n == Approx(0).margin(0.01));
  CHECK(squares / n == Approx(1).epsilon(0.01));
  CHECK(fourth / n == Approx(3).epsilon(0.03));
}

TEST_CASE("a permutation holds every number once and is not the identity") {
  const auto order = Random(5, Purpose::data_order).permutation(1000);
  CHECK(std::set<std::uint64_t>(order.begin(), order.end()).size() == 1000);
  std::size_t fixed = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    fixed += order[i] == i;
  CHECK(fixed < 10);
}

// Reference values: scipy.stats.norm.ppf.
TEST_CASE("inverse_normal_cdf") {
  CHECK(inverse_normal_cdf(0.5) == Approx(0).margin(1e-12));
  CHECK(inverse_normal_cdf(0.975) == Approx(1.959963984540054).epsilon(1e-9));
  CHECK(inverse_normal_cdf(0.001) == Approx(-3.090232306167813).epsilon(1e-9));
  CHECK(inverse_normal_cdf(1e-9) == Approx(-5.997807015007686).epsilon(1e-8));
}
