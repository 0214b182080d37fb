// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace vfm;

// Values and bits from the IEEE 754 binary16 tables, checked with numpy.float16.
TEST_CASE("float_to_half rounds to nearest even") {
  CHECK(float_to_half(0.0f) == 0x0000);
  CHECK(float_to_half(-0.0f) == 0x8000);
  CHECK(float_to_half(1.0f) == 0x3c00);
  CHECK(float_to_half(-2.0f) == 0xc000);
  CHECK(float_to_half(0.333251953125f) == 0x3555);
  CHECK(float_to_half(65504.0f) == 0x7bff);
  CHECK(float_to_half(65519.99f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(1e10f) == 0x7c00);
  CHECK(float_to_half(6.103515625e-05f) == 0x0400);  // smallest normal
  CHECK(float_to_half(5.9604644775390625e-08f) == 0x0001);
  CHECK(float_to_half(2.98023223876953125e-08f) == 0x0000);  // a tie goes to even
  CHECK(float_to_half(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(float_to_half(1.0f + 0x3p-11f) == 0x3c02);
  CHECK(std::isnan(half_to_float(float_to_half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("every half survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    REQUIRE(float_to_half(value) == bits);
  }
}

TEST_CASE("bfloat16 rounds to nearest even and keeps NaN") {
  CHECK(float_to_bfloat16(1.0f) == 0x3f80);
  CHECK(float_to_bfloat16(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(float_to_bfloat16(1.0f + 0x3p-8f) == 0x3f82);
  CHECK(float_to_bfloat16(3.4e38f) == 0x7f80);
  CHECK(std::isnan(
      bfloat16_to_float(float_to_bfloat16(std::numeric_limits<float>::signaling_NaN()))));
}
