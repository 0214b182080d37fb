// How far two lists of numbers are apart, for tests. What is no number counts as infinitely far:
// std::max alone would pass over it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace vfm {

/// Of spans or vectors of float or double, of one length.
template <class A, class B>
double largest_difference(const A& a, const B& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(double{a[i]} - double{b[i]});
    if (std::isnan(apart)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, apart);
  }
  return worst;
}

/// The same in parts of the largest element of `b`: what rounding in a sum amounts to.
template <class A, class B>
double distance(const A& a, const B& b) {
  double largest = 1e-30;
  for (const auto value : b)
    largest = std::max(largest, std::abs(double{value}));
  return largest_difference(a, b) / largest;
}

}  // namespace vfm
