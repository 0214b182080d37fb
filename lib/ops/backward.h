// The parts of which several ops' backward passes are made. For ops only: what models use is in
// each op's own header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/norm/modulate.h"
#include "ops/position/qk_norm_rope.h"

namespace vfm::ops {

/// What a product with `weight` depends on: `others`, its matrix and its adapters'.
std::vector<Tensor> inputs_with(std::vector<Tensor> others, const LinearWeight& weight);

/// Backward of y = x w^T: adds to the gradients of the weight's matrices, and returns that of x, of
/// x's dtype, if it is wanted.
Tensor linear_backward(Tape& tape, const Tensor& dy, const Tensor& x, const LinearWeight& weight,
                       bool want_dx);

/// The same in two parts, for x that is computed again together with what follows from dx. dy is of
/// the weight's dtype.
struct LinearInputGradient {
  Tensor dx;
  std::vector<Tensor> inner;  ///< of each adapter, for its matrices' gradients
};
LinearInputGradient linear_input_gradient(const Tensor& dy, const LinearWeight& weight,
                                          bool want_dx);
void linear_weight_gradients(Tape& tape, const Tensor& dy, const Tensor& x,
                             const LinearWeight& weight, const std::vector<Tensor>& inner);

/// x w^T and what adapters add, into y; `values` are the weight's. And the gradient of x from that
/// of y, into dx; without those of adapters' matrices. Rows of larger tensors may be given.
void multiply_into(const Tensor& x, const LinearWeight& weight, const Tensor& values,
                   const Tensor& y);
void input_gradient_into(const Tensor& dy, const LinearWeight& weight, const Tensor& values,
                         const Tensor& dx);

/// What gathered_linear and summed_linear are made of, for an exchange that has chunks. Forward of
/// the first, which also leaves all gathered rows in `all`; and backward, to the gradient of its
/// x, from those rows or `own` ones, which are gathered again.
Tensor multiply_gathered(const Tensor& x, const LinearWeight& weight, const Exchange& gather,
                         Tensor& all);
Tensor gathered_backward(Tape& tape, const Tensor& dy, const Tensor& own, const Tensor& all,
                         const LinearWeight& weight, const Exchange& gather, bool want_dx);
/// Of the second; backward leaves the gradients of the weight to linear_weight_gradients, with the
/// gathered dy.
Tensor multiply_summed(const Tensor& x, const LinearWeight& weight, const Exchange& sum);
struct SummedGradient {
  Tensor dy, dx;
  std::vector<Tensor> inner;
};
SummedGradient summed_input_gradient(const Tensor& dy, const LinearWeight& weight,
                                     const Exchange& sum, bool want_dx);

/// gelu(x); and the gradient of x from that of the result, of the same dtype, which is overwritten
/// if nobody else has it. Backward writes gelu(x) to `y` if it is defined.
Tensor gelu_forward(const Tensor& x);
Tensor gelu_backward(const Tensor& x, const Tensor& dy, const Tensor& y = Tensor());

/// swiglu(x); and the gradient of x from that of the result, of the same dtype.
Tensor swiglu_forward(const Tensor& x);
Tensor swiglu_backward(const Tensor& x, const Tensor& dy);

/// As without `values`; if it is false these are not copied, so that their columns of the result
/// have no values, though gradients pass.
Tensor qk_norm_rope(Tape& tape, const Tensor& x, const QkNormRope& layout, bool values);

/// From the gradient of qk_norm_rope's result, of whatever dtype, which is overwritten if nobody
/// else has it: accumulates those of x and of the weights.
void qk_norm_rope_gradients(Tape& tape, Tensor dy, const Tensor& x, const QkNormRope& layout);

/// rmsnorm(x) without recording; and as above.
Tensor rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon);
void rmsnorm_backward(Tape& tape, Tensor dy, const Tensor& x, const Tensor& weight, float epsilon);

/// What modulate_forward made, and keeps for backward.
struct ModulateSaved {
  Tensor stream, moments;
};

/// Without recording. `normed` is returned apart, so that it need not be kept.
ModulateSaved modulate_forward(const ModulateInput& in, Tensor& normed);
/// Recomputes `normed`, to the bit.
Tensor modulate_recompute(const ModulateInput& in, const ModulateSaved& saved);
/// Takes the stream's gradient from the tape, and accumulates those of all inputs. `dnormed` is of
/// the dtype in.out, or undefined: zero.
void modulate_backward(Tape& tape, const ModulateInput& in, const ModulateSaved& saved,
                       const Tensor& dnormed);

}  // namespace vfm::ops
