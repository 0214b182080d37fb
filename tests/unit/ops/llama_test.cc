// What the networks with a Llama's layers need beside the others: SwiGLU, casts, rows in another
// order, positions without a norm.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/check.h"
#include "ops/lean_linear.h"
#include "ops/linear.h"
#include "ops/positions.h"
#include "ops/row_order.h"
#include "ops/swiglu.h"

using namespace vfm;
using namespace vfm::ops;

TEST_CASE("swiglu is silu of the first half times the second") {
  each_isa([] {
    for (const std::int64_t width : {1, 19, 64}) {
      const Tensor x = noise({5, 2 * width}, 1);
      Tape silent(false);
      const Tensor y = swiglu(silent, x);
      REQUIRE(y.shape() == Shape{5, width});
      double worst = 0;
      for (std::int64_t row = 0; row < 5; ++row)
        for (std::int64_t i = 0; i < width; ++i) {
          const double a = x.data<float>()[row * 2 * width + i];
          const double b = x.data<float>()[row * 2 * width + width + i];
          worst = std::max(worst,
                           std::abs(y.data<float>()[row * width + i] - a / (1 + std::exp(-a)) * b));
        }
      CHECK(worst < 3e-6);
      CHECK(distance(swiglu(silent, x.to(DType::bf16)), y) < 0.02);
      check_gradients({x}, [&](Tape& t) { return swiglu(t, x); });
    }
  });
  Tape silent(false);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor edge = swiglu(silent, Tensor::from(std::vector<float>{-1e30f, nan, 1, 1}, {1, 4}));
  CHECK(edge.floats()[0] == 0);
  CHECK(std::isnan(edge.floats()[1]));
  CHECK_THROWS_AS(swiglu(silent, noise({2, 3}, 1)), Error);
}

TEST_CASE("swiglu_linear is swiglu and linear, to the bit, without keeping what is between") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = noise({9, 40}, 1, dtype), w = noise({7, 20}, 2, dtype);
    const Tensor cotangent = noise({9, 7}, 3, dtype);
    const auto plain =
        gradients({x, w}, cotangent, [&](Tape& t) { return linear(t, swiglu(t, x), w); });
    const auto lean = gradients({x, w}, cotangent, [&](Tape& t) { return swiglu_linear(t, x, w); });
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(std::memcmp(plain[i].raw(), lean[i].raw(), plain[i].bytes()) == 0);
  }
}

TEST_CASE("a cast changes the type, and gradients pass it") {
  const Tensor x = noise({4, 6}, 1);
  Tape silent(false);
  CHECK(cast(silent, x, DType::f32).id() == x.id());
  const Tensor low = cast(silent, x, DType::bf16);
  CHECK(low.dtype() == DType::bf16);
  CHECK(distance(low, x) < 0.01);
  // Back in f32 behind it, and beside it: both ways add up.
  const Tensor cotangent = noise({4, 6}, 2);
  const auto gradient = gradients({x}, cotangent, [&](Tape& t) {
    return add(t, x, cast(t, cast(t, x, DType::bf16), DType::f32));
  });
  for (std::size_t i = 0; i < 24; ++i)
    CHECK(gradient[0].floats()[i] == Approx(2 * cotangent.floats()[i]).epsilon(0.01));
}

TEST_CASE("rows go into another order and come back, and so do their gradients") {
  const std::vector<std::int32_t> order = {3, 0, 4, 1, 2};
  const RowOrder rows(order, Device::cpu);
  const Tensor x = noise({5, 3}, 1);
  Tape silent(false);
  const Tensor y = reorder_rows(silent, x, rows);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      CHECK(y.floats()[3 * i + j] == x.floats()[3 * static_cast<std::size_t>(order[i]) + j]);
  CHECK(distance(restore_rows(silent, y, rows), x) == 0);
  CHECK(distance(reorder_rows(silent, x.to(DType::bf16), rows), y) < 0.01);
  check_gradients({x}, [&](Tape& t) { return reorder_rows(t, x, rows); });
  check_gradients({x}, [&](Tape& t) { return restore_rows(t, x, rows); });
  CHECK_THROWS_AS(RowOrder(std::vector<std::int32_t>{0, 0}, Device::cpu), Error);
  CHECK_THROWS_AS(RowOrder(std::vector<std::int32_t>{0, 2}, Device::cpu), Error);
  CHECK_THROWS_AS(RowOrder(std::vector<std::int32_t>{0, -1}, Device::cpu), Error);
}

TEST_CASE("learned positions without a norm are the sum of their rows") {
  each_isa([] {
    const Tensor t = noise({3, 20}, 1), h = noise({4, 20}, 2), w = noise({5, 20}, 3);
    const std::vector<TokenGrid> grids = {{2, 3, 4}, {1, 2, 5}};
    Tape silent(false);
    const Tensor y = learned_positions(silent, t, h, w, grids, false);
    const auto row = [](const Tensor& table, std::size_t at, std::size_t i) {
      return table.floats()[at * 20 + i];
    };
    // Token (1, 2, 3) of the first sample.
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(row(y, 23, i) == Approx(row(t, 1, i) + row(h, 2, i) + row(w, 3, i)).margin(1e-6));
    check_gradients({t, h, w},
                    [&](Tape& tape) { return learned_positions(tape, t, h, w, grids, false); });
    std::vector<TokenGrid> half = {{1, 3, 1}};
    half[0].step = {1, 0.5, 1};
    const Tensor between = learned_positions(silent, t, h, w, half, false);
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(row(between, 1, i) ==
            Approx(row(t, 0, i) + (row(h, 0, i) + row(h, 1, i)) / 2 + row(w, 0, i)).margin(1e-6));
  });
}
