// Vectors as they stand in tars.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/stored_vectors.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace vfm;
using namespace vfm::columns;

TEST_CASE("a vector with a length is brought to 1; zeros and what is not finite have none") {
  std::vector<float> good = {3, 4}, small = {0, 6e-8f}, zeros(4);
  CHECK(to_unit_length(good));
  CHECK(good[0] == Approx(0.6));
  CHECK(to_unit_length(small));
  CHECK(small[1] == 1);
  CHECK_FALSE(to_unit_length(zeros));
  for (const float wild : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> bad = {1, wild};
    CHECK_FALSE(to_unit_length(bad));
  }
}

TEST_CASE("the cosine of a stored vector does not depend on its length, and is 0 without one") {
  CHECK(stored_cosine({1, 0}, {3, 4}) == Approx(0.6));
  CHECK(stored_cosine({1, 0}, {7, 0}) == 1);
  CHECK(stored_cosine({1, 0}, {0, 0}) == 0);
  CHECK(stored_cosine({1, 0}, {1, std::numeric_limits<float>::infinity()}) == 0);
  CHECK(stored_cosine({1, 0}, {std::nanf(""), 1}) == 0);
}
