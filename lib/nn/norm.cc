// SPDX-License-Identifier: Apache-2.0
#include "nn/norm.h"

#include <utility>

#include "ops/matmul/recompute_linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/cast.h"

namespace vfm::nn {

using ops::Tape;

ModulatedStream AdaptiveNorm::of(Stream& x, const Tensor& modulation, int number,
                                 const Conditions& conditions) const {
  ops::ModulateInput input = x.pending(conditions.rows, conditions.ones);
  input.modulation = modulation;
  input.modulation_column = std::int64_t{3} * number * x.x.size(1);
  input.epsilon = options_.epsilon;
  input.centred = options_.centred;
  input.out = compute_;
  return {x, input};
}

Tensor ModulatedStream::values(Tape& tape) {
  auto [sum, normed] = ops::gated_residual_layernorm_modulate(tape, input_);
  leave(std::move(sum));
  return std::move(normed);
}

ops::Quantized ModulatedStream::rounded(Tape& tape) {
  auto [sum, normed] = ops::gated_residual_layernorm_modulate_fp8(tape, input_);
  leave(std::move(sum));
  return std::move(normed);
}

Tensor ModulatedStream::gathered(Tape& tape, const ops::LinearWeight& w,
                                 const ops::Exchange& gather) {
  auto [sum, y] = ops::modulate_linear(tape, input_, w, gather);
  leave(std::move(sum));
  return std::move(y);
}

void ModulatedStream::leave(Tensor sum) {
  stream_.x = std::move(sum);
  stream_.branch = stream_.extra = Tensor();
  stream_.gates = input_.modulation;
  stream_.gate_column = input_.modulation_column + 2 * stream_.x.size(1);
  stream_.rows = input_.rows;
}

Norm::Norm(WeightMaker& make, const std::string& name, std::int64_t width, float epsilon)
    : weight_(make.table(name + ".weight", {width}, Init::one)),
      epsilon_(epsilon),
      compute_(make.options.compute) {}

Tensor NormedStream::values(Tape& tape) {
  stream_.settle(tape);
  return ops::cast(tape, ops::rmsnorm(tape, stream_.x, weight_, epsilon_), compute_);
}

Tensor NormedStream::gathered(Tape& tape, const ops::LinearWeight& w, const ops::Exchange& gather) {
  stream_.settle(tape);
  return ops::rmsnorm_linear(tape, stream_.x, weight_, epsilon_, w, gather);
}

Tensor BareStream::values(Tape& tape) {
  stream_.settle(tape);
  return ops::cast(tape, stream_.x, compute_);
}

}  // namespace vfm::nn
