// SPDX-License-Identifier: Apache-2.0
#include "base/philox.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <set>

#include "base/normals.h"

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

namespace {
/// Box-Muller of words a and b. In more than doubles: the sine of nearly a whole turn needs them.
std::pair<double, double> exact_normals(std::uint32_t a, std::uint32_t b) {
  const double radius = std::sqrt(-2 * std::log((a + 0.5) / 4294967296.0));
  const long double angle = 2 * std::numbers::pi_v<long double> * (b + 0.5L) / 4294967296.0L;
  return {static_cast<double>(radius * std::cos(angle)),
          static_cast<double>(radius * std::sin(angle))};
}
/// Units in the last place between floats of one sign.
long distance(float a, double b) {
  return std::abs(long{std::bit_cast<std::int32_t>(a)} -
                  long{std::bit_cast<std::int32_t>(static_cast<float>(b))});
}
}  // namespace

TEST_CASE("normals are Box-Muller's to 4 units in the last place") {
  const Random random(1, Purpose::test, 2, 3);
  std::vector<float> values(1 << 20);
  random.fill_normal(values);
  long worst = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const auto [first, second] = exact_normals(random.bits(i), random.bits(i + 1));
    worst = std::max({worst, distance(values[i], first), distance(values[i + 1], second)});
  }
  CHECK(worst <= 4);
  CHECK(worst > 0);  // or nothing was compared
}

// The words that give the largest and the smallest normals are one in four thousand million: the
// cipher is told where to find them by undoing its rounds.
namespace {
std::array<std::uint32_t, 4> undo_cipher(std::array<std::uint32_t, 4> c, std::uint32_t k0,
                                         std::uint32_t k1) {
  const auto inverse = [](std::uint32_t odd) {
    std::uint32_t x = odd;  // Newton's steps double the bits that are right
    for (int i = 0; i < 5; ++i)
      x *= 2 - odd * x;
    return x;
  };
  k0 += 9 * 0x9E3779B9u, k1 += 9 * 0xBB67AE85u;
  for (int round = 0; round < 10; ++round, k0 -= 0x9E3779B9u, k1 -= 0xBB67AE85u) {
    const std::uint32_t c0 = c[3] * inverse(0xD2511F53u), c2 = c[1] * inverse(0xCD9E8D57u);
    const auto high = [](std::uint32_t m, std::uint32_t v) {
      return static_cast<std::uint32_t>(std::uint64_t{m} * v >> 32);
    };
    c = {c0, c[0] ^ k0 ^ high(0xCD9E8D57u, c2), c2, c[2] ^ k1 ^ high(0xD2511F53u, c0)};
  }
  return c;
}
}  // namespace

TEST_CASE("normals keep the tails of 32-bit words, on both sides of one half") {
  const std::uint32_t key[2] = {5, 6};
  long worst = 0;
  for (const std::uint32_t a :
       {0u, 1u, 2u, 3u, 0xffu, 0x12345u, 0x7ffffffeu, 0x7fffffffu, 0x80000000u, 0x80000001u,
        0xfffedcbau, 0xfffffffdu, 0xfffffffeu, 0xffffffffu})
    for (const std::uint32_t b :
         {0u, 1u, 0x1fffffffu, 0x20000000u, 0x3fffffffu, 0x40000000u, 0x60000000u, 0x7fffffffu,
          0x80000000u, 0xbfffffffu, 0xc0000000u, 0xe0000000u, 0xffffffffu}) {
      const auto counter = undo_cipher({a, b, 0, 0}, key[0], key[1]);
      REQUIRE(philox4x32(counter, {key[0], key[1]}) == std::array<std::uint32_t, 4>{a, b, 0, 0});
      std::array<float, 4 * kNormalBlocks> got;
      best_normal_blocks()(std::uint64_t{counter[1]} << 32 | counter[0], key, &counter[2],
                           got.data());
      const auto [first, second] = exact_normals(a, b);
      CAPTURE(a, b, got[0], first, got[1], second);
      worst = std::max({worst, distance(got[0], first), distance(got[1], second)});
      CHECK(worst <= 4);
    }
}

TEST_CASE("normals have the same bits on every instruction set") {
  const std::uint32_t key[2] = {1, 2}, stream[2] = {3, 4};
  std::vector<NormalBlocks*> others;
#if defined(__x86_64__)
  if (best_normal_blocks() != base::normal_blocks) others.push_back(avx2::normal_blocks);
  if (best_normal_blocks() == avx512::normal_blocks) others.push_back(avx512::normal_blocks);
#endif
  using Many = std::array<float, 4 * kNormalBlocks>;
  for (std::uint64_t first = 0; first < 300 * kNormalBlocks; first += kNormalBlocks) {
    Many plain, other;
    const std::uint64_t at = first + 0xfffffff0;  // over the edge of the lower word
    base::normal_blocks(at, key, stream, plain.data());
    for (NormalBlocks* make : others) {
      make(at, key, stream, other.data());
      for (std::size_t i = 0; i < plain.size(); ++i)
        REQUIRE(std::bit_cast<std::uint32_t>(plain[i]) == std::bit_cast<std::uint32_t>(other[i]));
    }
  }
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
