// An operand is what a linear layer multiplies: a tensor, or the result of a norm (nn/norm.h) or an
// activation (nn/mlp.h). The result is computed when the layer (nn/linear.h) asks for it. The layer
// decides how: kept for backward, computed again in backward, or rounded to FP8 in passing. Norms
// and activations know how each is done, and networks need not know.
//
// An operand is multiplied once. It refers to what it is made of, which must outlive it.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/exchange.h"
#include "ops/matmul/exchanged_linear.h"
#include "ops/matmul/low_rank.h"
#include "ops/matmul/quantize.h"
#include "ops/tape.h"

namespace vfm::nn {

class Operand {
 public:
  virtual ~Operand() = default;
  /// The tensor, in the type that products compute in. Backward keeps it.
  virtual Tensor values(ops::Tape& tape) = 0;
  /// ops::quantize(values()), for inference.
  virtual ops::Quantized rounded(ops::Tape& tape) { return ops::quantize(values(tape)); }
  /// ops::gathered_linear() and ops::summed_linear() of values(), which backward computes again if
  /// it can.
  virtual Tensor gathered(ops::Tape& tape, const ops::LinearWeight& w,
                          const ops::Exchange& gather) {
    return ops::gathered_linear(tape, values(tape), w, gather);
  }
  virtual Tensor summed(ops::Tape& tape, const ops::LinearWeight& w, const ops::Exchange& sum,
                        DType out) {
    return ops::summed_linear(tape, values(tape), w, sum, out);
  }
};

/// A tensor that is there already.
class TensorOperand final : public Operand {
 public:
  explicit TensorOperand(Tensor x) : x_(std::move(x)) {}
  Tensor values(ops::Tape& /*tape*/) override { return std::move(x_); }

 private:
  Tensor x_;
};

}  // namespace vfm::nn
