// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace vfm;
using namespace vfm::io;

// The bytes numpy.save wrote for numpy.array([[1, -2]], dtype='<f2') (NumPy 1.24).
static const std::string kNumpy = std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                  "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), }" +
                                  std::string(58, ' ') + "\n" + std::string("\x00\x3c\x00\xc0", 4);

TEST_CASE("what we write is what numpy writes") {
  const float values[] = {1, -2};
  CHECK(make_npy_half({1, 2}, values) == kNumpy);
}

TEST_CASE("numpy's bytes are read") {
  const NpyHeader header = parse_npy(kNumpy, "x");
  CHECK(header.shape == std::vector<std::int64_t>{1, 2});
  CHECK(header.dtype == "<f2");
  CHECK(header.data_offset % 64 == 0);
  CHECK(npy_floats(kNumpy, "x") == std::vector<float>{1, -2});
}

TEST_CASE("shapes of every rank survive") {
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{6}, {2, 3}, {1, 2, 1, 3}, {6, 1}}) {
    const std::string file = make_npy_float(shape, six);
    CHECK(parse_npy(file, "x").shape == shape);
    CHECK(npy_floats(file, "x") == six);
  }
  CHECK(parse_npy(make_npy_float({}, std::vector<float>{1}), "x").elements() == 1);
  CHECK(parse_npy(make_npy_float({0, 4}, {}), "x").elements() == 0);
  CHECK(npy_floats(make_npy_float({0, 4}, {}), "x").empty());
}

TEST_CASE("integers of every width keep their value") {
  const std::vector<std::uint16_t> wide = {0, 1, 65535};
  CHECK(npy_integers(make_npy("<u2", {3}, wide.data(), 6), "x") ==
        std::vector<std::int64_t>{0, 1, 65535});
  const std::vector<std::int32_t> negative = {-1, 1 << 30};
  CHECK(npy_integers(make_npy("<i4", {2, 1}, negative.data(), 8), "x") ==
        std::vector<std::int64_t>{-1, 1 << 30});
  const std::int8_t small = -128;
  CHECK(npy_integers(make_npy("|i1", {1}, &small, 1), "x") == std::vector<std::int64_t>{-128});
  CHECK(npy_integers(make_npy("<i8", {0}, nullptr, 0), "x").empty());
  CHECK_THROWS_AS(npy_integers(kNumpy, "x"), Error);
}

TEST_CASE("damaged files are refused, never read past their end") {
  for (std::size_t cut = 0; cut < kNumpy.size(); ++cut)
    CHECK_THROWS_AS(parse_npy(std::string_view(kNumpy).substr(0, cut), "x"), Error);
  CHECK_THROWS_AS(parse_npy(kNumpy + "x", "x"), Error);
  std::string huge = kNumpy;
  huge.replace(huge.find("(1, 2)"), 6, "(99999999999, 99999999999)");
  CHECK_THROWS_AS(parse_npy(huge, "x"), Error);
  std::string fortran = kNumpy;
  fortran.replace(fortran.find("False"), 5, "True ");
  CHECK_THROWS_WITH(parse_npy(fortran, "'a.npy'"), Catch::Contains("Fortran"));
}
