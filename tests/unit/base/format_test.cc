// The formatter of builds without {fmt} gives {fmt}'s text.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "base/format_plain.h"
#include "base/philox.h"

using namespace vfm;

// One pattern, one set of values, both formatters.
#define SAME(...) CHECK(plain::format(__VA_ARGS__) == fmt::format(__VA_ARGS__))

TEST_CASE("the plain formatter writes text, integers and braces as {fmt} does") {
  const std::string text = "a text", empty;
  const std::string_view view = "a view";
  const char* pointer = "a pointer";
  SAME("nothing");
  SAME("");
  SAME("{}", text);
  SAME("'{}', '{}' and {}{}", view, pointer, empty, "a literal");
  SAME("{{}} {{{}}} }}{{", 1);
  SAME("{} {} {}", true, false, 'x');
  SAME("{} {} {}", 0, -1, 42u);
  SAME("{} {}", std::numeric_limits<long long>::min(), std::numeric_limits<long long>::max());
  SAME("{} {}", std::numeric_limits<unsigned long long>::max(), std::int64_t{-7});
  SAME("{} {}", static_cast<short>(-3), static_cast<unsigned char>(200));
  SAME("[{:2}] [{:02}] [{:2}] [{:02}]", 7, 7, 123, 123);
  SAME("[{:5}] [{:05}] [{:d}] [{:03d}]", -42, -42, -42, -4);
  SAME("{:x} {:016x} {:8x}", 48879u, 0x123456789abcdefull, 255);
}

TEST_CASE("the plain formatter writes floats as {fmt} does") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double v : std::initializer_list<double>{
           0.,    -0.,     1.,    -1.5,  0.1,    1. / 3, 1e5,    123456.789,
           1e15,  1e16,    1e17,  1e-4,  1e-5,   2.5e-7, 1e300,  5e-324,
           999.5, 999.499, 0.999, 1e100, -1e-10, inf,    -inf,   nan,
           3e15,  9.96,    99.95, 0.05,  0.045,  1.005,  2.675,  1234567890123456.,
           8192,  14.5,    512,   100,   1024,   4e9,    0.0625, 12345678901234567890.}) {
    CAPTURE(v);
    SAME("{}", v);
    SAME("{:.0f} {:.1f} {:.2f} {:.6f}", v, v, v, v);
    SAME("{:.1g} {:.3g} {:.12g} {:.17g}", v, v, v, v);
  }
  for (const float v : {0.f, 0.1f, 1.5f, -3.25f, 1e-4f, 16777.25f, 0.3333333f}) {
    CAPTURE(v);
    SAME("{}", v);
    SAME("{:.3f} {:.3g}", v, v);
  }
  const Random random(1, Purpose::test);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double v =
        random.normal(i) * std::pow(10., std::floor(40 * random.uniform(i + 50000) - 20));
    REQUIRE(plain::format("{} {:.3f} {:.4g}", v, v, v) == fmt::format("{} {:.3f} {:.4g}", v, v, v));
  }
}
