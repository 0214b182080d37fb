// SPDX-License-Identifier: Apache-2.0
#include "nn/mlp.h"

#include "base/error.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/pointwise/gelu.h"
#include "ops/pointwise/swiglu.h"

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
      up_(make, hidden_parts(up, shape.hidden), shape.width, {.divided = Divided::outputs}),
      down_(make, {{down, shape.width}}, shape.hidden,
            {.divided = Divided::inputs, .out = shape.out}) {}

Tensor Mlp::forward(ops::Tape& tape, Operand&& x, const Pass& pass) const {
  const Tensor hidden = up_.forward(tape, std::move(x), pass);
  return down_.forward(tape, Activated(activation_, hidden), pass);
}

Tensor Activated::values(ops::Tape& tape) {
  return activation_ == Activation::gelu ? ops::gelu(tape, hidden_) : ops::swiglu(tape, hidden_);
}

ops::Quantized Activated::rounded(ops::Tape& tape) {
  return activation_ == Activation::gelu ? ops::quantize_gelu(hidden_) : Operand::rounded(tape);
}

Tensor Activated::summed(ops::Tape& tape, const ops::LinearWeight& w, const ops::Exchange& sum,
                         DType out) {
  if (activation_ == Activation::swiglu) return ops::swiglu_linear(tape, hidden_, w, out, sum);
  if (out != hidden_.dtype()) fail("GELU is not recomputed for a product in another type");
  return ops::gelu_linear(tape, hidden_, w, sum);
}

}  // namespace vfm::nn
