// SPDX-License-Identifier: Apache-2.0
#include "base/float8.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace vfm;

namespace {

// The definition, in double: (-1)^s 2^(e - 7) (1 + m / 8), and 2^-6 m / 8 for e = 0.
double meaning(int code) {
  const int e = code >> 3 & 15, m = code & 7;
  const double magnitude = e == 0 ? std::ldexp(m, -9) : std::ldexp(8 + m, e - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

}  // namespace

TEST_CASE("all 256 codes of E4M3 mean what they should, and survive the way there and back") {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    INFO(code);
    if ((code & 0x7f) == 0x7f) {
      CHECK(std::isnan(f8e4m3_to_float(byte)));
      CHECK(float_to_f8e4m3(f8e4m3_to_float(byte)) == 0x7f);
      continue;
    }
    CHECK(f8e4m3_to_float(byte) == meaning(code));
    CHECK(std::signbit(f8e4m3_to_float(byte)) == (code >= 128));
    CHECK(float_to_f8e4m3(f8e4m3_to_float(byte)) == code);
  }
}

TEST_CASE("between two values of E4M3 the nearer one is taken, halfway the even one") {
  for (const int sign : {0, 0x80})
    for (int code = 0; code < 0x7e; ++code) {
      // Exact in f32: neighbours differ in one bit of 4.
      const auto middle = static_cast<float>((meaning(code) + meaning(code + 1)) / 2);
      const float side = sign ? -1.f : 1.f;
      INFO(code << " " << middle);
      CHECK(float_to_f8e4m3(side * middle) == (sign | (code % 2 == 0 ? code : code + 1)));
      CHECK(float_to_f8e4m3(side * std::nextafter(middle, 0.f)) == (sign | code));
      CHECK(float_to_f8e4m3(side * std::nextafter(middle, 1e9f)) == (sign | (code + 1)));
    }
}

TEST_CASE("beyond the largest value E4M3 saturates; NaN stays NaN; tiny values become zero") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {448.f, 449.f, 464.f, 480.f, 1e30f, infinity}) {
    CHECK(float_to_f8e4m3(value) == 0x7e);
    CHECK(float_to_f8e4m3(-value) == 0xfe);
  }
  CHECK(float_to_f8e4m3(std::numeric_limits<float>::quiet_NaN()) == 0x7f);
  CHECK(float_to_f8e4m3(-std::numeric_limits<float>::quiet_NaN()) == 0x7f);
  CHECK(float_to_f8e4m3(0.f) == 0);
  CHECK(float_to_f8e4m3(-0.f) == 0x80);
  CHECK(float_to_f8e4m3(0x1p-10f) == 0);
  CHECK(float_to_f8e4m3(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(float_to_f8e4m3(-1e-30f) == 0x80);
}
