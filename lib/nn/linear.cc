// SPDX-License-Identifier: Apache-2.0
#include "nn/linear.h"

#include <string_view>
#include <utility>

#include "nn/agreed_scale.h"
#include "nn/collectives.h"
#include "ops/matmul/bias.h"
#include "ops/matmul/exchanged_linear.h"
#include "ops/matmul/few_rows.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/linear_fp8.h"
#include "ops/pointwise/cast.h"

namespace vfm::nn {

using ops::Tape;

Linear::Linear(WeightMaker& make, std::vector<Weight::Part> parts, std::int64_t columns,
               const LinearOptions& options)
    : divided_(options.divided), out_(options.out.value_or(make.options.compute)) {
  const bool inputs = divided_ == Divided::inputs && !make.layout.by_outputs;
  const Cut cut = make.layout.cut(inputs ? 1 : 0);
  summands_ = inputs && cut.ranks > 1;
  if (divided_ == Divided::inputs && !inputs && cut.ranks > 1) {
    whole_input_ = gather_row(*make.layout.tp, shares(columns, cut.ranks));
    whole_output_ = gather_row(*make.layout.tp, shares(parts.front().rows, cut.ranks));
  }
  std::vector<Weight::Part> biases = parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].name += ".weight";
    biases[i].name += ".bias";
  }
  weight_ = &make.stacked(std::move(parts), columns, divided_ == Divided::nothing ? Cut() : cut);
  const bool outputs = divided_ != Divided::nothing && !inputs;
  if (options.bias) bias_ = &make.biases(std::move(biases), outputs ? cut : Cut());
}

Linear::Linear(const Weight& weight, std::optional<DType> out)
    : weight_(&weight), out_(out.value_or(weight.dtype())) {}

Linear::Linear(WeightMaker& make, Weight& weight, std::optional<DType> out) : Linear(weight, out) {
  constexpr std::string_view kEnd = ".weight";
  std::vector<Weight::Part> biases;
  for (const Parameter& matrix : weight.parameters())
    biases.push_back({matrix.name.substr(0, matrix.name.size() - kEnd.size()) + ".bias",
                      matrix.placement.global.front()});
  bias_ = &make.biases(std::move(biases));
}

Tensor Linear::forward(Tape& tape, const Operand& x, const Pass& pass) const {
  if (pass.newest) return of_newest(tape, x);
  return divided_ == Divided::inputs ? summed(tape, x, pass) : of_gathered(tape, x, pass);
}

ops::LinearWeight Linear::weight(Tape& tape) const {
  ops::LinearWeight made = weight_->matrix(tape);
  if (bias_ != nullptr) made.bias = bias_->op(tape);
  return made;
}

Tensor Linear::of_gathered(Tape& tape, const Operand& x, const Pass& pass) const {
  const ops::Exchange none;
  const ops::Exchange& gather = divided_ == Divided::outputs ? pass.exchanges.gather : none;
  if (weight_->in_fp8()) return with_bias(tape, in_fp8(tape, x, gather, out_));
  if (out_ != weight_->dtype()) {
    const Tensor all = ops::run_exchange(tape, x.values(tape), gather);
    return ops::linear(tape, all, weight(tape), out_);
  }
  if (pass.recompute && x.gathered) return x.gathered(tape, weight(tape), gather);
  const Tensor values = x.values(tape);
  return ops::gathered_linear(tape, values, weight(tape), gather);
}

// Separate adapters are on matrices of one rank.
Tensor Linear::of_newest(Tape& tape, const Operand& x) const {
  const Tensor row = ops::run_exchange(tape, x.values(tape), whole_input_);
  const ops::LinearWeight w = weight(tape);
  const Tensor y = w.added.empty()
                       ? ops::few_rows(row.to(DType::f32), w.values(), {}, w.bias).to(out_)
                       : ops::linear(tape, row, w, out_);
  return ops::run_exchange(tape, y, whole_output_);
}

// What is summed over ranks travels as the network computes.
Tensor Linear::summed(Tape& tape, const Operand& x, const Pass& pass) const {
  const ops::Exchange& sum = pass.exchanges.sum;
  const DType out = sum ? weight_->dtype() : out_;
  if (weight_->in_fp8()) {
    const Tensor y = in_fp8(tape, x, {}, summands_ ? DType::f32 : out);
    return with_bias(tape, ops::cast(tape, ops::run_exchange(tape, y, sum), out));
  }
  if (pass.recompute && x.summed) return x.summed(tape, weight(tape), sum, out);
  const Tensor values = x.values(tape);
  return ops::summed_linear(tape, values, weight(tape), sum, out);
}

Tensor Linear::with_bias(Tape& tape, Tensor y) const {
  if (bias_ != nullptr) ops::add_bias(tape, y, bias_->op(tape));
  return y;
}

Tensor Linear::in_fp8(Tape& tape, const Operand& x, const ops::Exchange& gather, DType out) const {
  dist::Group* const ranks = weight_->fp8_ranks();
  ops::Quantized low =
      ranks == nullptr && x.rounded ? x.rounded(tape) : quantize_together(x.values(tape), ranks);
  low.values = ops::run_exchange(tape, low.values, gather);
  return ops::linear_fp8(tape, low, weight_->fp8(), out);
}

}  // namespace vfm::nn
