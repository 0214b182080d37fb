// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/orthogonalize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/check.h"
#include "ops/optim/sums.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

using Doubles = std::vector<double>;

/// A [m, k] times B [k, n].
Doubles times(const Doubles& a, const Doubles& b, std::size_t m, std::size_t k, std::size_t n) {
  Doubles c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t l = 0; l < k; ++l)
      for (std::size_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

Doubles transposed(const Doubles& a, std::size_t rows, std::size_t columns) {
  Doubles t(a.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      t[j * rows + i] = a[i * columns + j];
  return t;
}

/// Jordan's iteration as it is published: always on the side of the fewer rows.
Doubles published(Doubles x, std::size_t rows, std::size_t columns) {
  const bool tall = rows > columns;
  if (tall) x = transposed(x, rows, columns), std::swap(rows, columns);
  double squares = 0;
  for (const double v : x)
    squares += v * v;
  for (double& v : x)
    v /= std::sqrt(squares) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const Doubles a = times(x, transposed(x, rows, columns), rows, columns, rows);
    Doubles b = times(a, a, rows, rows, rows);
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    const Doubles more = times(b, x, rows, rows, columns);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = 3.4445 * x[i] + more[i];
  }
  return tall ? transposed(x, rows, columns) : x;
}

Doubles doubles_of(const Tensor& values) {
  const Tensor exact = values.to(DType::f32);
  return {exact.floats().begin(), exact.floats().end()};
}

double distance_of(const Doubles& made, const Doubles& expected) {
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    difference += (made[i] - expected[i]) * (made[i] - expected[i]);
    all += expected[i] * expected[i];
  }
  return std::sqrt(difference / all);
}

}  // namespace

TEST_CASE("a matrix is made orthogonal as Jordan's iteration does it, whichever side is longer") {
  for (const Shape& shape : {Shape{24, 60}, {60, 24}, {17, 17}, {1, 40}, {40, 1}}) {
    CAPTURE(to_string(shape));
    const Tensor matrix = noise_tensor(shape, 5);
    const auto rows = static_cast<std::size_t>(shape[0]),
               columns = static_cast<std::size_t>(shape[1]);
    const Doubles expected = published(doubles_of(matrix), rows, columns);
    CHECK(distance_of(doubles_of(orthogonalize(matrix, 1e-7f)), expected) < 1e-4);
    const Tensor low = matrix.to(DType::bf16), made = orthogonalize(low, 1e-7f);
    CHECK(made.dtype() == DType::bf16);
    CHECK(distance_of(doubles_of(made), expected) < 0.2);
    // Neither its scale nor its sign makes another direction.
    const Tensor scaled(shape);
    scaled_sum(scaled, -1000, matrix, 0, matrix);
    Doubles negative = doubles_of(orthogonalize(scaled, 1e-7f));
    for (double& v : negative)
      v = -v;
    CHECK(distance_of(negative, expected) < 1e-3);
  }
}

TEST_CASE("singular values come near to one, and a matrix of zeros stays so") {
  const Tensor matrix = noise_tensor({24, 96}, 7);
  const Doubles o = doubles_of(orthogonalize(matrix, 1e-7f));
  const Doubles squared = times(o, transposed(o, 24, 96), 24, 96, 24);
  double trace = 0, others = 0;
  for (std::size_t i = 0; i < 24; ++i)
    for (std::size_t j = 0; j < 24; ++j)
      (i == j ? trace : others) += i == j ? squared[i * 24 + j] : std::abs(squared[i * 24 + j]);
  CHECK(trace / 24 == Approx(0.9).margin(0.25));
  CHECK(others / (24 * 23) < 0.1);
  const Tensor zeros = Tensor::zeros({4, 6});
  const Tensor made = orthogonalize(zeros, 1e-7f);
  CHECK(std::ranges::all_of(made.floats(), [](float v) { return v == 0; }));
  CHECK_THROWS_AS(orthogonalize(Tensor::zeros({4}), 1e-7f), Error);
}

TEST_CASE("a scaled sum is rounded once, in place or not") {
  const Tensor x = noise_tensor({5003}, 1), y = noise_tensor({5003}, 2);
  const auto expect = [](const Tensor& out, const Tensor& a, const Tensor& b) {
    const Doubles made = doubles_of(out), first = doubles_of(a), second = doubles_of(b);
    const double limit = out.dtype() == DType::f32 ? 1e-6 : 1.0 / 128;
    double most = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const double expected = 0.75 * first[i] - 1.5 * second[i];
      most = std::max(most, std::abs(made[i] - expected) / (1 + std::abs(expected)));
    }
    CHECK(most < limit);
  };
  for (const DType to : {DType::f32, DType::bf16})
    for (const auto& [a, b] : {std::pair(x, y), {x.to(DType::bf16), y}, {x, y.to(DType::bf16)}}) {
      const Tensor out({5003}, to);
      scaled_sum(out, 0.75f, a, -1.5f, b);
      expect(out, a, b);
      if (a.dtype() != to) continue;
      const Tensor place = a.clone();
      scaled_sum(place, 0.75f, place, -1.5f, b);
      CHECK(doubles_of(place) == doubles_of(out));
    }
  CHECK_THROWS_AS(scaled_sum(x, 1, x, 1, noise_tensor({5002}, 1)), Error);
  CHECK_THROWS_AS(scaled_sum(x, 1, x.to(DType::bf16), 1, y.to(DType::bf16)), Error);
}
