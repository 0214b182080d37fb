// Backward passes that several ops share. For ops only; models include each op's own header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/norm/modulate.h"
#include "ops/pointwise/activation_kind.h"
#include "ops/position/qk_norm_rope.h"

namespace vfm::ops {

/// Returns `others` with the tensors of `weight` appended: the matrix and the adapters' matrices.
/// (add_bias of ops/matmul/bias.h records the bias.)
std::vector<Tensor> inputs_with(std::vector<Tensor> others, const LinearWeight& weight);

/// Returns x w^T plus the adapters' terms, without the bias, in dtype `out`. Not recorded.
Tensor linear_forward(const Tensor& x, const LinearWeight& weight, DType out);

/// Backward of y = x w^T. Adds to the gradients of the weight's matrices. Returns the gradient of
/// x, in x's dtype, or an undefined Tensor if not `want_dx`.
Tensor linear_backward(Tape& tape, const Tensor& dy, const Tensor& x, const LinearWeight& weight,
                       bool want_dx);

/// linear_backward() in two parts, for an x that is recomputed only after dx is known. dy has the
/// weight's dtype.
struct LinearInputGradient {
  Tensor dx;
  std::vector<Tensor> inner;  ///< one per adapter, for the gradients of its matrices
};
LinearInputGradient linear_input_gradient(const Tensor& dy, const LinearWeight& weight,
                                          bool want_dx);
void linear_weight_gradients(Tape& tape, const Tensor& dy, const Tensor& x,
                             const LinearWeight& weight, const std::vector<Tensor>& inner);

/// multiply_into() writes x w^T plus the adapters' terms into y; `values` are the weight's.
/// input_gradient_into() writes the gradient of x into dx, without gradients of adapters' matrices.
/// All tensors may be rows of larger tensors.
void multiply_into(const Tensor& x, const LinearWeight& weight, const Tensor& values,
                   const Tensor& y);
void input_gradient_into(const Tensor& dy, const LinearWeight& weight, const Tensor& values,
                         const Tensor& dx);

/// gathered_linear for an exchange that has chunks, without the bias. The forward pass also leaves
/// all gathered rows in `all`. The backward pass returns the gradient of x. If `all` is undefined,
/// it gathers x again from `own`.
Tensor multiply_gathered(const Tensor& x, const LinearWeight& weight, const Exchange& gather,
                         Tensor& all);
Tensor gathered_backward(Tape& tape, const Tensor& dy, const Tensor& own, const Tensor& all,
                         const LinearWeight& weight, const Exchange& gather, bool want_dx);
/// summed_linear for an exchange that has chunks, without the bias. The backward pass computes no
/// gradients of the weight: pass the gathered dy to linear_weight_gradients.
Tensor multiply_summed(const Tensor& x, const LinearWeight& weight, const Exchange& sum);
struct SummedGradient {
  Tensor dy, dx;
  std::vector<Tensor> inner;
};
SummedGradient summed_input_gradient(const Tensor& dy, const LinearWeight& weight,
                                     const Exchange& sum, bool want_dx);

/// activate(x, kind) and its backward pass. The gradient of x has the dtype of dy and overwrites dy
/// if nobody else holds it. If `y` is defined, backward writes activate(x, kind) to it.
Tensor activation_forward(const Tensor& x, ActivationKind kind);
Tensor activation_backward(const Tensor& x, const Tensor& dy, ActivationKind kind,
                           const Tensor& y = Tensor());

/// swiglu(x) and its backward pass; the gradient of x has the dtype of dy.
Tensor swiglu_forward(const Tensor& x);
Tensor swiglu_backward(const Tensor& x, const Tensor& dy);

/// qk_norm_rope() of qk_norm_rope.h. If `values` is false, the columns of the values are not copied
/// and stay uninitialised in the result; their gradients pass all the same.
Tensor qk_norm_rope(Tape& tape, const Tensor& x, const QkNormRope& layout, bool values);

/// Adds the gradients of x and of the weights to the tape, from the gradient dy of qk_norm_rope's
/// result, of any dtype. Overwrites dy if nobody else holds it.
void qk_norm_rope_gradients(Tape& tape, Tensor dy, const Tensor& x, const QkNormRope& layout);

/// rmsnorm(x) without recording. Backward adds the gradients of x and of the weight to the tape and
/// overwrites dy if nobody else holds it.
Tensor rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon);
void rmsnorm_backward(Tape& tape, Tensor dy, const Tensor& x, const Tensor& weight, float epsilon);

/// The same for layer_norm(x).
Tensor layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, float epsilon);
void layer_norm_backward(Tape& tape, Tensor dy, const Tensor& x, const Tensor& weight,
                         const Tensor& bias, float epsilon);

/// Results of modulate_forward that its backward pass needs.
struct ModulateSaved {
  Tensor stream, moments;
};

/// The forward pass without recording. `normed` is returned apart, so that it need not be kept.
ModulateSaved modulate_forward(const ModulateInput& in, Tensor& normed);
/// Recomputes `normed`, bit for bit.
Tensor modulate_recompute(const ModulateInput& in, const ModulateSaved& saved);
/// Takes the stream's gradient from the tape and adds the gradients of all inputs. `dnormed` has
/// the dtype in.out; undefined stands for zero.
void modulate_backward(Tape& tape, const ModulateInput& in, const ModulateSaved& saved,
                       const Tensor& dnormed);

}  // namespace vfm::ops
