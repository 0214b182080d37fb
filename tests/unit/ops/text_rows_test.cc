// What is done to rows of a text between products: heads that are turned, and a bias of some
// columns.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "ops/matmul/bias.h"
#include "ops/position/turn_heads.h"
#include "support/noise.h"

using namespace vfm;
using namespace vfm::ops;

TEST_CASE("heads are turned by the angle of their row, and what stands beside them is not") {
  const Tensor x = noise_tensor({3, 14}, 1), before = x.clone();
  const Tensor cosines({3, 3}), sines({3, 3});
  for (std::int64_t i = 0; i < 9; ++i) {
    cosines.data<float>()[i] = std::cos(0.1f * static_cast<float>(i));
    sines.data<float>()[i] = std::sin(0.1f * static_cast<float>(i));
  }
  turn_heads(x, 2, cosines, sines);
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 14; ++column) {
      const int head = column / 6, pair = column % 3;
      const bool second = column % 6 >= 3;
      const auto at = [&](int c) { return double{before.data<float>()[row * 14 + c]}; };
      const double angle = 0.1 * (3 * row + pair), a = at(column - (second ? 3 : 0)),
                   b = head < 2 ? at(column + (second ? 0 : 3)) : 0;
      const double turned = second ? b * std::cos(angle) + a * std::sin(angle)
                                   : a * std::cos(angle) - b * std::sin(angle);
      CHECK(x.data<float>()[row * 14 + column] ==
            Approx(head < 2 ? turned : at(column)).margin(1e-6));
    }
}

TEST_CASE("neighbours are turned by the angles of their row, each by its own") {
  const Tensor x = noise_tensor({3, 14}, 1), before = x.clone(), cosines = noise_tensor({3, 4}, 2),
               sines = noise_tensor({3, 4}, 3);
  turn_neighbours(x, 2, cosines, sines);
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 14; ++column) {
      const auto at = [&](int c) { return before.data<float>()[row * 14 + c]; };
      const int angle = row * 4 + column % 4;
      const float other = column % 2 == 0 ? -at(column + 1) : at(column - 1);
      const float turned =
          at(column) * cosines.data<float>()[angle] + other * sines.data<float>()[angle];
      CHECK(x.data<float>()[row * 14 + column] ==
            Approx(column < 8 ? turned : at(column)).margin(1e-6));
    }
}

TEST_CASE("a bias is added to its columns of every row") {
  const Tensor y = noise_tensor({4, 9}, 1), before = y.clone(), bias = noise_tensor({5}, 2);
  add_bias(y, 2, bias);
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 9; ++column) {
      const float was = before.data<float>()[row * 9 + column];
      const bool own = column >= 2 && column < 7;
      CHECK(y.data<float>()[row * 9 + column] ==
            (own ? was + bias.data<float>()[column - 2] : was));
    }
}

TEST_CASE("heads and biases that do not fit are errors") {
  const Tensor x = noise_tensor({2, 8}, 1), angles = noise_tensor({2, 3}, 2);
  CHECK_THROWS_WITH(turn_heads(x, 2, angles, angles), Catch::Contains("do not fit"));
  CHECK_THROWS_WITH(turn_heads(x, 1, angles, noise_tensor({2, 4}, 3)),
                    Catch::Contains("do not fit"));
  CHECK_THROWS_WITH(turn_heads(x, 1, noise_tensor({3, 3}, 2), angles),
                    Catch::Contains("do not fit"));
  CHECK_THROWS_WITH(turn_neighbours(x, 1, angles, angles), Catch::Contains("1 heads of 3"));
  CHECK_THROWS_WITH(turn_neighbours(x, 3, noise_tensor({2, 4}, 2), noise_tensor({2, 4}, 3)),
                    Catch::Contains("do not fit"));
  const Tensor odd = noise_tensor({2, 9}, 1), pairs = noise_tensor({2, 4}, 2);
  CHECK_THROWS_WITH(turn_neighbours(odd, 2, pairs, pairs), Catch::Contains("have no pairs"));
  CHECK_THROWS_WITH(add_bias(x, 4, noise_tensor({5}, 4)), Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(add_bias(x, 0, noise_tensor({5}, 4, DType::bf16)),
                    Catch::Contains("does not fit"));
}
