// An operand is what a linear layer multiplies: a tensor, or the result of a norm (nn/norm.h) or an
// activation (nn/mlp.h). The result is computed when the layer (nn/linear.h) asks for it. The layer
// decides how: kept for backward, computed again in backward, or rounded to FP8 in passing. Norms
// and activations know how each is done, and networks need not know.
//
// An operand is multiplied once. It refers to what it is made of, which must outlive it.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/matmul/quantize.h"
#include "ops/tape.h"

namespace vfm::nn {

struct Operand {
  Operand() = default;
  Operand(Tensor x)  // NOLINT: a tensor that is there already is one
      : values([x = std::move(x)](ops::Tape&) mutable { return std::move(x); }) {}

  /// The tensor, in the type that products compute in. Backward keeps it.
  std::function<Tensor(ops::Tape&)> values;
  /// ops::quantize(values()), for inference; null: it is not computed in another way.
  std::function<ops::Quantized(ops::Tape&)> rounded;
  /// ops::gathered_linear() and ops::summed_linear() of values(), which backward computes again;
  /// null: it cannot.
  std::function<Tensor(ops::Tape&, const ops::LinearWeight&, const ops::Exchange& gather)> gathered;
  std::function<Tensor(ops::Tape&, const ops::LinearWeight&, const ops::Exchange& sum, DType out)>
      summed;
};

}  // namespace vfm::nn
