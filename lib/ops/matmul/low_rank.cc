// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/low_rank.h"

#include "base/error.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/pointwise/add.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

Matrix matrix(const Tensor& t, bool transposed = false) {
  return {t.raw(), t.dtype(), t.size(1), transposed};
}

/// P columns of a wider matrix.
Matrix columns(const Tensor& t, std::int64_t first, bool transposed) {
  const auto skipped = static_cast<std::size_t>(first) * dtype_size(t.dtype());
  return {t.data<std::byte>() + skipped, t.dtype(), t.size(1), transposed};
}

Tensor product(std::int64_t rows, std::int64_t columns, std::int64_t inner, const Matrix& a,
               const Matrix& b, DType dtype, Device device) {
  Tensor c({rows, columns}, dtype, device);
  gemm(device, rows, columns, inner, a, b, c.raw(), dtype, columns, false);
  return c;
}

Tensor scaled(const Tensor& x, float scale) {
  if (scale == 1) return x;
  Tensor y = Tensor::zeros(x.shape(), x.dtype(), x.device());
  add_scaled_columns(y, 0, x, scale);
  return y;
}

/// The gradient of `leaf`, [rows, columns] = a b.
void add_gradient(Tape& tape, const Tensor& leaf, std::int64_t inner, const Matrix& a,
                  const Matrix& b) {
  if (!tape.wants_grad(leaf)) return;
  const std::int64_t rows = leaf.size(0), columns = leaf.size(1);
  if (const Tape::Sum sum = tape.sum_of(leaf); sum.tensor.defined())
    gemm(leaf.device(), rows, columns, inner, a, b, sum.tensor.raw(), DType::f32, columns, sum.add);
  else
    tape.accumulate(leaf, product(rows, columns, inner, a, b, DType::f32, leaf.device()));
}

void check(const Tensor& y, const Tensor& x, const LowRank& l) {
  const bool fits = y.dims() == 2 && x.dims() == 2 && l.a.dims() == 2 && l.b.dims() == 2 &&
                    y.size(0) == x.size(0) && l.a.size(1) == x.size(1) &&
                    l.a.size(0) == l.b.size(1) && l.first >= 0 &&
                    l.first + l.b.size(0) <= y.size(1);
  if (!fits || l.a.dtype() != x.dtype() || l.b.dtype() != x.dtype())
    fail("no low-rank product of x {} {} with {} {} and {} {} into columns {} and on of {}",
         dtype_name(x.dtype()), to_string(x.shape()), dtype_name(l.a.dtype()),
         to_string(l.a.shape()), dtype_name(l.b.dtype()), to_string(l.b.shape()), l.first,
         to_string(y.shape()));
}

}  // namespace

void add_scaled_columns(const Tensor& target, std::int64_t first, const Tensor& term, float scale) {
  const bool fits = target.dims() == 2 && term.dims() == 2 && target.size(0) == term.size(0) &&
                    first >= 0 && first + term.size(1) <= target.size(1);
  if (!fits || target.dtype() != term.dtype() ||
      (target.dtype() != DType::f32 && target.dtype() != DType::bf16) ||
      target.device() != term.device())
    fail("cannot add {} {} to columns {} and on of {} {}", dtype_name(term.dtype()),
         to_string(term.shape()), first, dtype_name(target.dtype()), to_string(target.shape()));
  const std::int64_t rows = term.size(0), narrow = term.size(1), wide = target.size(1);
  std::byte* const to =
      target.data<std::byte>() + static_cast<std::size_t>(first) * dtype_size(target.dtype());
  VFM_RUN(Touching(term, term, term), add_scaled_columns, target.dtype(), to, wide, term.raw(),
          narrow, rows, scale);
}

void add_low_rank(const Tensor& y, const Tensor& x, const LowRank& l) {
  check(y, x, l);
  const std::int64_t n = x.size(0), rank = l.a.size(0), wide = l.b.size(0);
  const Tensor inner =
      product(n, rank, x.size(1), matrix(x), matrix(l.a, true), x.dtype(), x.device());
  const Tensor term =
      product(n, wide, rank, matrix(inner), matrix(l.b, true), y.dtype(), y.device());
  add_scaled_columns(y, l.first, term, l.scale);
}

// With h = scale x A^T and g = scale dy B: dB = dy^T h, dA = g^T x, dx = g A. Recomputing h costs
// less than keeping it would be worth: it is R / O of the layer's own product.
Tensor low_rank_input_gradient(const Tensor& dy, const LowRank& l, const Tensor& dx) {
  const std::int64_t n = dy.size(0), in = l.a.size(1), rank = l.a.size(0), wide = l.b.size(0);
  const Tensor g = scaled(
      product(n, rank, wide, columns(dy, l.first, false), matrix(l.b), dy.dtype(), dy.device()),
      l.scale);
  if (dx.defined())
    add_in_place(dx, product(n, in, rank, matrix(g), matrix(l.a), dx.dtype(), dx.device()));
  return g;
}

void low_rank_weight_gradients(Tape& tape, const Tensor& dy, const Tensor& x, const LowRank& l,
                               const Tensor& g) {
  check(dy, x, l);
  const std::int64_t n = x.size(0);
  if (tape.wants_grad(l.b)) {
    const Tensor inner =
        product(n, l.a.size(0), x.size(1), matrix(x), matrix(l.a, true), x.dtype(), x.device());
    const Tensor h = scaled(inner, l.scale);
    add_gradient(tape, l.b, n, columns(dy, l.first, true), matrix(h));
  }
  add_gradient(tape, l.a, n, matrix(g, true), matrix(x));
}

}  // namespace vfm::ops
