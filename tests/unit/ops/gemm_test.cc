// The product without a library, and that with tiles, against oneDNN's and against sums in double.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <cstring>
#include <limits>

#include "ops/check.h"
#include "ops/matmul/gemm_cpu.h"
#include "ops/matmul/gemm_tiles.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

struct Case {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed, add;
  DType in, out;
};

using Product = void (*)(std::int64_t, std::int64_t, std::int64_t, const Matrix&, const Matrix&,
                         void*, DType, std::int64_t, bool);

constexpr std::int64_t kMargin = 3;  // rows are longer than what is in them

// What is asked for as [rows, columns], laid out as Matrix wants it.
Matrix matrix(const Tensor& tensor, bool transposed) {
  return {tensor.raw(), tensor.dtype(), tensor.size(1), transposed};
}

Tensor operand(std::int64_t rows, std::int64_t columns, bool transposed, DType dtype,
               std::uint64_t key) {
  if (transposed) std::swap(rows, columns);
  return noise_tensor({rows, columns + kMargin}, key, dtype);
}

// C with a margin on the right that must stay as it is.
Tensor multiply(Product product, const Case& c, const Tensor& a, const Tensor& b) {
  const Tensor result = noise_tensor({c.m, c.n + kMargin}, 3, c.out), before = result.clone();
  product(c.m, c.n, c.k, matrix(a, c.a_transposed), matrix(b, c.b_transposed), result.raw(), c.out,
          c.n + kMargin, c.add);
  const Tensor now = result.to(DType::f32), then = before.to(DType::f32), inside({c.m, c.n});
  for (std::int64_t i = 0; i < c.m; ++i) {
    const float* const row = now.data<float>() + i * (c.n + kMargin);
    std::memcpy(inside.data<float>() + i * c.n, row, static_cast<std::size_t>(c.n) * 4);
    for (std::int64_t j = c.n; j < c.n + kMargin; ++j)
      REQUIRE(row[j] == then.data<float>()[i * (c.n + kMargin) + j]);
  }
  return inside;
}

Tensor in_double(const Case& c, const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f32), y = b.to(DType::f32),
               start = noise_tensor({c.m, c.n + kMargin}, 3);
  const Tensor result({c.m, c.n});
  // From element to element along the sum: of a row of A, and of a column of B.
  const std::int64_t x_step = c.a_transposed ? x.size(1) : 1;
  const std::int64_t y_step = c.b_transposed ? 1 : y.size(1);
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = c.add ? double{start.data<float>()[i * (c.n + kMargin) + j]} : 0;
      const float* row = x.data<float>() + i * (c.a_transposed ? 1 : x.size(1));
      const float* column = y.data<float>() + j * (c.b_transposed ? y.size(1) : 1);
      for (std::int64_t p = 0; p < c.k; ++p)
        sum += double{row[p * x_step]} * double{column[p * y_step]};
      result.data<float>()[i * c.n + j] = static_cast<float>(sum);
    }
  return result;
}

// As the machine does it, perhaps with tiles.
void multiply_here(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                   void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  gemm(Device::cpu, m, n, k, a, b, c, c_dtype, c_stride, add);
}

void compare(const Case& c) {
  CAPTURE(c.m, c.n, c.k, c.a_transposed, c.b_transposed, c.add, dtype_name(c.in),
          dtype_name(c.out));
  const Tensor a = operand(c.m, c.k, c.a_transposed, c.in, 1);
  const Tensor b = operand(c.k, c.n, c.b_transposed, c.in, 2);
  const Tensor exact = in_double(c, a, b), library = multiply(gemm_cpu, c, a, b);
  const double tolerance = c.out == DType::bf16 ? 4e-3 : 1e-5;  // half a unit in the last place
  each_isa(
      [&] {
        const Tensor plain = multiply(gemm_plain, c, a, b);
        CHECK(distance(plain, exact) < tolerance);
        CHECK(distance(plain, library) < 2 * tolerance);
        CHECK(distance(multiply(multiply_here, c, a, b), exact) < tolerance);
      },
      c.in == DType::bf16);
}

}  // namespace

TEST_CASE("the product without a library is that of oneDNN and of sums in double") {
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      for (const bool add : {false, true}) {
        // Less than a tile, tiles and a rest, several blocks of the sum.
        compare({1, 1, 1, a, b, add, DType::f32, DType::f32});
        compare({3, 17, 5, a, b, add, DType::bf16, DType::f32});
        compare({3, 17, 0, a, b, add, DType::bf16, DType::f32});
        compare({200, 130, 300, a, b, add, DType::f32, DType::f32});
        compare({193, 257, 513, a, b, add, DType::bf16, DType::f32});
        if (!add) compare({33, 100, 260, a, b, false, DType::bf16, DType::bf16});
      }
}

TEST_CASE(
    "the product without a library: no sum is zero, NaN stays where it is, threads are no matter") {
  const Tensor a = noise_tensor({5, 7}, 1), b = noise_tensor({7, 9}, 2),
               c = noise_tensor({5, 9}, 3);
  gemm_plain(5, 9, 0, matrix(a, false), matrix(b, false), c.raw(), DType::f32, 9, false);
  for (const float v : c.floats())
    CHECK(v == 0.f);
  a.floats()[7] = std::numeric_limits<float>::quiet_NaN();  // row 1
  gemm_plain(5, 9, 7, matrix(a, false), matrix(b, false), c.raw(), DType::f32, 9, false);
  for (std::size_t i = 0; i < 45; ++i)
    CHECK(std::isnan(c.floats()[i]) == (i / 9 == 1));

  const Tensor x = noise_tensor({500, 300}, 4), y = noise_tensor({300, 400}, 5);
  std::vector<Tensor> results;
  const int most = omp_get_max_threads();
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    results.emplace_back(Shape{500, 400});
    gemm_plain(500, 400, 300, matrix(x, false), matrix(y, false), results.back().raw(), DType::f32,
               400, false);
  }
  omp_set_num_threads(most);
  CHECK(std::memcmp(results[0].raw(), results[1].raw(), results[0].bytes()) == 0);
}

TEST_CASE(
    "the product with tiles: any number of rows, each with the same bits, threads no matter") {
  const Case all{kTileRows + 80, 2 * kTileColumns + 20, kTileDepth + 50, false, true,
                 false,          DType::bf16,           DType::f32};
  const Tensor a = operand(all.m, all.k, false, all.in, 1),
               b = operand(all.k, all.n, true, all.in, 2);
  const Tensor whole = multiply(multiply_here, all, a, b);
  CHECK(distance(whole, multiply(gemm_cpu, all, a, b)) < 1e-5);
  if (!has_gemm_tiles(matrix(a, false), matrix(b, true))) return;
  const auto same = [&](const Tensor& some, std::int64_t first) {
    return std::memcmp(some.raw(), whole.rows(first, first + some.size(0)).raw(), some.bytes()) ==
           0;
  };
  for (const std::int64_t rows : {1, 16, 17, 40}) {
    Case few = all;
    few.m = rows;
    CHECK(same(multiply(multiply_here, few, a.rows(1030, 1030 + rows), b), 1030));
  }
  const int most = omp_get_max_threads();
  for (const int threads : {1, 5}) {
    omp_set_num_threads(threads);
    CHECK(same(multiply(multiply_here, all, a, b), 0));
  }
  omp_set_num_threads(most);
}
