// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/bias.h"

#include "base/error.h"
#include "ops/added_gradient.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void add_bias_gradient(Tape& tape, const Tensor& dy, const Tensor& bias) {
  if (!dy.defined() || dy.size(0) == 0) return;
  const AddedGradient sum(tape, bias);
  const Touching work = Touching(dy, sum.tensor()).gpu_scratch([&] {
    return kBiasParts * sizeof(float) * static_cast<std::size_t>(dy.size(1));
  });
  VFM_RUN(work, bias_gradient, dy.dtype(), dy.raw(), dy.size(0), dy.size(1), sum.data());
  sum.finish();
}

}  // namespace

void add_bias(const Tensor& y, std::int64_t first, const Tensor& bias) {
  if (y.dims() != 2 || bias.dims() != 1 || (y.dtype() != DType::f32 && y.dtype() != DType::bf16) ||
      bias.dtype() != DType::f32 || y.device() != bias.device() || first < 0 ||
      first + bias.size(0) > y.size(1))
    fail("a bias {} {} does not fit {} {} from column {} on", dtype_name(bias.dtype()),
         to_string(bias.shape()), dtype_name(y.dtype()), to_string(y.shape()), first);
  const Touching work = Touching(bias).columns(y, bias.size(0)).columns(y, bias.size(0));
  std::byte* const to =
      y.data<std::byte>() + static_cast<std::size_t>(first) * dtype_size(y.dtype());
  VFM_RUN(work, add_bias, y.dtype(), to, y.size(0), y.size(1), bias.data<float>(), bias.size(0));
}

// Of all columns, where the other one takes some. The op that made y takes y's gradient once what
// is recorded here has read it.
void add_bias(Tape& tape, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return;
  if (y.dims() != 2 || bias.elements() != y.size(1))
    fail("a bias {} does not fit a product {}", to_string(bias.shape()), to_string(y.shape()));
  add_bias(y, 0, bias);
  if (!tape.wants_grad(bias)) return;
  const auto backward = [y, bias](Tape& t) { add_bias_gradient(t, t.grad(y), bias); };
  if (tape.wants_grad(y))
    tape.in_backward(backward);
  else
    tape.record(y, {bias}, backward);
}

}  // namespace vfm::ops
