// SPDX-License-Identifier: Apache-2.0
#include "dist/ordered_sum.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/cpu_level.h"
#include "base/half.h"
#include "support/noise.h"

using namespace vfm::dist;

namespace {

template <class T>
std::vector<T> sum_of(Sum sum, std::vector<std::vector<T>> parts, std::size_t into) {
  std::vector<const std::byte*> at;
  for (const auto& part : parts)
    at.push_back(reinterpret_cast<const std::byte*>(part.data()));
  std::vector<T>& to = parts[into];
  sum_in_order(sum, at, reinterpret_cast<std::byte*>(to.data()), to.size());
  return to;
}

constexpr std::size_t kCount = 3000, kParts = 3;

/// Three parts of noise, as f32; among them numbers that are hard to add: a NaN, infinities and
/// their difference, zeros below zero, and sums half way between two numbers of bf16.
std::vector<std::vector<float>> hard_parts() {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("17");
  const float hard[][kParts] = {{nan, 1, 2},
                                {1, nan, 2},
                                {1, 2, -nan},
                                {infinity, 1, 2},
                                {1, -infinity, 2},
                                {infinity, 1, -infinity},
                                {-0.f, -0.f, -0.f},
                                {-0.f, 0.f, -0.f},
                                {256, 1, 0},                         // a tie, to even: 256
                                {258, 1, 0},                         // a tie: 260
                                {1, -0x1p-8f, 0x1p-9f},              // a tie below 1
                                {0x1.fep127f, 0x1.fep119f, 0},       // overflows as it is rounded
                                {0x1p-133f, 0x1p-133f, -0x1p-130f},  // not normal
                                {std::numeric_limits<float>::max(), 0x1p127f, 0}};
  std::vector<std::vector<float>> parts;
  for (std::size_t p = 0; p < kParts; ++p) {
    parts.push_back(vfm::noise(kCount, p + 1));
    // At the beginning and the end, and astride of what is added at once.
    for (const std::size_t at : {std::size_t{0}, std::size_t{1019}, kCount - std::size(hard)})
      for (std::size_t i = 0; i < std::size(hard); ++i)
        parts[p][at + i] = hard[i][p];
  }
  return parts;
}

/// `Adder` of parts, as bits.
template <class Bits, class Value, class Adder>
std::vector<Bits> bits_of(Adder* adder, const std::vector<std::vector<Value>>& parts) {
  std::vector<const Value*> at;
  for (const std::vector<Value>& part : parts)
    at.push_back(part.data());
  std::vector<Value> sum(kCount);
  adder(at.data(), at.size(), sum.data(), kCount);
  std::vector<Bits> bits;
  for (const Value value : sum)
    bits.push_back(std::bit_cast<Bits>(value));
  return bits;
}

/// Of these functions those that this machine can run.
template <class Adder>
std::vector<Adder*> runnable(Adder* base, Adder* avx2, Adder* avx512) {
  std::vector<Adder*> adders = {base};
  if (vfm::cpu_level() >= vfm::CpuLevel::avx2) adders.push_back(avx2);
  if (vfm::cpu_level() >= vfm::CpuLevel::avx512) adders.push_back(avx512);
  return adders;
}

}  // namespace

TEST_CASE("sums: added in the order of the parts") {
  // 1e8 + 1 is 1e8 in f32, so the order is seen.
  CHECK(sum_of<float>(Sum::f32, {{1e8f}, {-1e8f}, {1.f}}, 0) == std::vector<float>{1});
  CHECK(sum_of<float>(Sum::f32, {{1.f}, {1e8f}, {-1e8f}}, 2) == std::vector<float>{0});
  CHECK(sum_of<double>(Sum::f64, {{1.0}, {1e17}, {-1e17}}, 1) == std::vector<double>{0});
  CHECK(sum_of<std::int64_t>(Sum::i64, {{(std::int64_t{1} << 60) + 1}, {2}}, 1) ==
        std::vector<std::int64_t>{(std::int64_t{1} << 60) + 3});
  CHECK(std::signbit(sum_of<float>(Sum::f32, {{-0.f}, {-0.f}}, 0)[0]));
}

TEST_CASE("sums: bf16 is rounded once") {
  const auto bf = vfm::float_to_bfloat16;
  // 256 + 1 is 256 in bf16 (8 bits), 256 + 1 + 1 is 258.
  CHECK(sum_of<std::uint16_t>(Sum::bf16, {{bf(256)}, {bf(1)}, {bf(1)}}, 0) ==
        std::vector<std::uint16_t>{bf(258)});
}

TEST_CASE("sums: more than a block, into any part") {
  for (const std::size_t into : {0, 1, 2}) {
    std::vector<std::vector<float>> parts(3, std::vector<float>(3000));
    for (std::size_t i = 0; i < 3000; ++i)
      for (std::size_t p = 0; p < 3; ++p)
        parts[p][i] = static_cast<float>(i * 10 + p);
    const std::vector<float> sum = sum_of(Sum::f32, parts, into);
    for (std::size_t i = 0; i < 3000; ++i)
      REQUIRE(sum[i] == static_cast<float>(i * 30 + 3));
  }
  CHECK_THROWS(sum_of<float>(Sum::none, {{1.f}}, 0));
}

TEST_CASE(
    "sums: all instruction sets give the same bits, of f32 and of bf16 rounded as one number") {
  const std::vector<std::vector<float>> parts = hard_parts();
  std::vector<std::uint32_t> wanted(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    wanted[i] = std::bit_cast<std::uint32_t>((parts[0][i] + parts[1][i]) + parts[2][i]);
  for (auto* adder : runnable(base::add_floats, avx2::add_floats, avx512::add_floats))
    CHECK(bits_of<std::uint32_t>(adder, parts) == wanted);

  std::vector<std::vector<std::uint16_t>> low(kParts, std::vector<std::uint16_t>(kCount));
  std::vector<std::uint16_t> rounded(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    for (std::size_t p = 0; p < kParts; ++p)
      low[p][i] = vfm::float_to_bfloat16(parts[p][i]);
    const auto part = [&](std::size_t p) { return vfm::bfloat16_to_float(low[p][i]); };
    rounded[i] = vfm::float_to_bfloat16((part(0) + part(1)) + part(2));
  }
  for (auto* adder : runnable(base::add_bfloats, avx2::add_bfloats, avx512::add_bfloats))
    CHECK(bits_of<std::uint16_t>(adder, low) == rounded);
}
