// SPDX-License-Identifier: Apache-2.0
#include "dist/ordered_sum.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "base/half.h"

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
