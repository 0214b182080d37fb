// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/orthogonalize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/matmul/gemm.h"
#include "ops/optim/sums.h"

namespace vfm::ops {
namespace {

constexpr float kFirst = 3.4445f, kThird = -4.7750f, kFifth = 2.0315f;
constexpr int kNewtonSteps = 5;

Matrix operand(const Tensor& x, bool transposed = false) {
  return {x.raw(), x.dtype(), x.size(1), transposed};
}

}  // namespace

Tensor orthogonalize(const Tensor& matrix, float epsilon) {
  if (matrix.dims() != 2)
    fail("only a matrix can be made orthogonal, not {}", to_string(matrix.shape()));
  const std::int64_t rows = matrix.size(0), columns = matrix.size(1),
                     least = std::min(rows, columns);
  const Device device = matrix.device();
  const DType type = matrix.dtype();
  const Tensor exact = matrix.to(DType::f32);
  const double squares =
      sum_squares(device, std::vector<Extent>{{exact.data<float>(), exact.elements()}});
  const auto scale = static_cast<float>(1 / (std::sqrt(squares) + double{epsilon}));
  const Tensor x(matrix.shape(), type, device), product(matrix.shape(), DType::f32, device);
  scaled_sum(x, scale, exact, 0, exact);
  const Tensor a({least, least}, type, device), squared({least, least}, DType::f32, device);
  for (int step = 0; step < kNewtonSteps; ++step) {
    const bool tall = rows > columns;
    gemm(device, least, least, std::max(rows, columns), operand(x, tall), operand(x, !tall),
         a.raw(), type, least, false);
    gemm(device, least, least, least, operand(a), operand(a), squared.raw(), DType::f32, least,
         false);
    scaled_sum(a, kThird, a, kFifth, squared);
    if (tall)
      gemm(device, rows, columns, columns, operand(x), operand(a), product.raw(), DType::f32,
           columns, false);
    else
      gemm(device, rows, columns, rows, operand(a), operand(x), product.raw(), DType::f32, columns,
           false);
    scaled_sum(x, kFirst, x, 1, product);
  }
  return x;
}

}  // namespace vfm::ops
