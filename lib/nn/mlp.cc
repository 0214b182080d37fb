// SPDX-License-Identifier: Apache-2.0
#include "nn/mlp.h"

#include <algorithm>

#include "base/error.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/pointwise/activations.h"

namespace vfm::nn {
namespace {

std::vector<Weight::Part> hidden_parts(const std::vector<std::string>& names, std::int64_t rows) {
  std::vector<Weight::Part> parts;
  for (const std::string& name : names)
    parts.push_back({name, rows});
  return parts;
}

}  // namespace

Mlp::Mlp(WeightMaker& make, const std::vector<std::string>& up, const std::string& down,
         const MlpShape& shape)
    : activation_(shape.activation),
      up_(make, hidden_parts(up, shape.hidden), shape.width,
          {.divided = Divided::outputs, .bias = shape.bias}),
      down_(make, {{down, shape.width}}, shape.hidden,
            {.divided = Divided::inputs, .bias = shape.bias, .out = shape.out}) {
  if (shape.out && activation_ != Activation::swiglu)
    fail(
        "MlpShape::out is for SwiGLU: other activations are not recomputed for a product in "
        "another type");
}

Tensor Mlp::forward(ops::Tape& tape, const Operand& x, const Pass& pass) const {
  const Tensor hidden = up_.forward(tape, x, pass);
  return down_.forward(tape, activated(activation_, hidden), pass);
}

Tensor feed_by_rows(const Tensor& x, std::int64_t hidden,
                    const std::function<Tensor(const Tensor& rows)>& feed) {
  constexpr std::int64_t kHiddenAtOnce = std::int64_t{16} << 20;
  const std::int64_t count = x.size(0), step = std::max<std::int64_t>(64, kHiddenAtOnce / hidden);
  if (count <= step) return feed(x);
  Tensor all;
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(count, begin + step);
    const Tensor some = feed(x.rows(begin, end));
    if (!all.defined()) all = Tensor({count, some.size(1)}, some.dtype(), some.device());
    copy(some, all.rows(begin, end));
  }
  return all;
}

Operand activated(Activation activation, const Tensor& hidden) {
  Operand made;
  if (activation == Activation::swiglu) {
    made.values = [hidden](ops::Tape& tape) { return ops::swiglu(tape, hidden); };
    made.summed = [hidden](ops::Tape& tape, const ops::LinearWeight& w, const ops::Exchange& sum,
                           DType out) { return ops::swiglu_linear(tape, hidden, w, out, sum); };
    return made;
  }
  const ops::ActivationKind kind = activation == Activation::gelu ? ops::ActivationKind::gelu
                                   : activation == Activation::tanh_gelu
                                       ? ops::ActivationKind::tanh_gelu
                                       : ops::ActivationKind::squared_relu;
  made.values = [hidden, kind](ops::Tape& tape) { return ops::activate(tape, hidden, kind); };
  if (kind == ops::ActivationKind::gelu)
    made.rounded = [hidden](ops::Tape&) { return ops::quantize_gelu(hidden); };
  made.summed = [hidden, kind](ops::Tape& tape, const ops::LinearWeight& w,
                               const ops::Exchange& sum, DType out) {
    if (out != hidden.dtype())
      fail("this activation is not recomputed for a product in another type");
    return ops::activated_linear(tape, hidden, w, kind, sum);
  };
  return made;
}

}  // namespace vfm::nn
