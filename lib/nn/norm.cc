// SPDX-License-Identifier: Apache-2.0
#include "nn/norm.h"

#include <memory>

#include "ops/matmul/recompute_linear.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/cast.h"

namespace vfm::nn {

using ops::Tape;

Operand AdaptiveNorm::of(Stream& x, const Tensor& modulation, int number,
                         const Conditions& conditions) const {
  const auto input =
      std::make_shared<ops::ModulateInput>(x.pending(conditions.rows, conditions.ones));
  input->modulation = modulation;
  input->modulation_column = std::int64_t{3} * number * x.x.size(1);
  input->epsilon = options_.epsilon;
  input->centred = options_.centred;
  input->out = compute_;
  const auto leave = [&x, input](const Tensor& sum) {
    x.x = sum;
    x.branch = x.extra = Tensor();
    x.gates = input->modulation;
    x.gate_column = input->modulation_column + 2 * sum.size(1);
    x.rows = input->rows;
  };
  Operand made;
  made.values = [=](Tape& tape) {
    const ops::Modulated result = ops::gated_residual_layernorm_modulate(tape, *input);
    leave(result.stream);
    return result.normed;
  };
  made.rounded = [=](Tape& tape) {
    const ops::ModulatedFp8 result = ops::gated_residual_layernorm_modulate_fp8(tape, *input);
    leave(result.stream);
    return result.normed;
  };
  made.gathered = [=](Tape& tape, const ops::LinearWeight& w, const ops::Exchange& gather) {
    const ops::ModulatedLinear result = ops::modulate_linear(tape, *input, w, gather);
    leave(result.stream);
    return result.y;
  };
  return made;
}

Norm::Norm(WeightMaker& make, const std::string& name, std::int64_t width, float epsilon,
           bool centred)
    : weight_(make.table(name + ".weight", {width}, Init::one)),
      bias_(centred ? &make.table(name + ".bias", {width}, Init::zero) : nullptr),
      epsilon_(epsilon),
      compute_(make.options.compute) {}

Operand Norm::of(Tape& tape, Stream& x) const {
  const Tensor weight = weight_.op(tape), bias = bias_ != nullptr ? bias_->op(tape) : Tensor();
  Operand made;
  made.values = [&x, weight, bias, epsilon = epsilon_, type = compute_](Tape& t) {
    x.settle(t);
    const Tensor y = bias.defined() ? ops::layer_norm(t, x.x, weight, bias, epsilon)
                                    : ops::rmsnorm(t, x.x, weight, epsilon);
    return ops::cast(t, y, type);
  };
  made.gathered = [&x, weight, bias, epsilon = epsilon_](Tape& t, const ops::LinearWeight& w,
                                                         const ops::Exchange& gather) {
    x.settle(t);
    return bias.defined() ? ops::layer_norm_linear(t, x.x, weight, bias, epsilon, w, gather)
                          : ops::rmsnorm_linear(t, x.x, weight, epsilon, w, gather);
  };
  return made;
}

Operand NoNorm::of(Stream& x) const {
  Operand made;
  made.values = [&x, type = compute](Tape& tape) {
    x.settle(tape);
    return ops::cast(tape, x.x, type);
  };
  return made;
}

}  // namespace vfm::nn
