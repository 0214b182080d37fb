// A linear layer, y = x W^T (+ b), on one rank or on those of tensor parallelism, with whatever its
// weight has (nn/weight.h): adapters, 8 bits, FP8, or a matrix that is gathered for its block.
//
// If the ranks of tp divide the outputs among them (column parallel), rows of x are gathered before
// the product. If they divide the inputs (row parallel), results are summed after it, and each rank
// gets the sums of its own rows. Both run in chunks if the exchange can (ops/row_chunks.h).
// The bias of divided outputs is divided, too. Any other bias is whole on each rank, which adds it
// to its own rows, after the sum (ops/matmul/bias.h).
// To write one token after the other (Pass::newest) the ranks may divide the outputs of every
// matrix (NetworkLayout::by_outputs). Where inputs would be divided, the row is gathered before the
// product and the result after it, so each number is computed by one rank as if it were alone. If
// the pass recomputes, backward computes the operand again (nn/operand.h). But if inputs are not
// divided, and the result is of another type than the weight, the operand is kept.
// In FP8, for inference, x is rounded before it travels, with one scale on all ranks. A rank's
// summands travel in f32. If each was rounded to bf16, the sum could be 2^-9 away from that of one
// rank. On the other side of a rounding to FP8 this becomes a step of 2^-3.
// Shape letters: S rows of this rank, N rows of all ranks of tp, I inputs, O outputs of this rank.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/operand.h"
#include "nn/pass.h"
#include "nn/weight_maker.h"

namespace vfm::nn {

/// The side of a matrix that the ranks of tp divide among them.
enum class Divided { nothing, outputs, inputs };

struct LinearOptions {
  Divided divided = Divided::nothing;
  bool bias = false;  ///< each matrix has a bias [O] f32, "NAME.bias"
  /// Type of a result that is not summed over ranks; none: the type of the weight.
  std::optional<DType> out = {};
};

class Linear {
 public:
  /// Makes the matrices "NAME.weight" of a block, which are multiplied in one product. `parts` have
  /// the names, and the numbers of all ranks' rows.
  Linear(WeightMaker& make, std::vector<Weight::Part> parts, std::int64_t columns,
         const LinearOptions& options = {});
  /// A weight that is made already, without bias and not divided.
  explicit Linear(const Weight& weight, std::optional<DType> out = {});
  /// The same with a bias, which is made now. That of the parameter "NAME.weight" is "NAME.bias".
  Linear(WeightMaker& make, Weight& weight, std::optional<DType> out = {});

  /// x [S, I] to [N, O] if outputs are divided; [N, I] to [S, O] if inputs are; else [S, I] to
  /// [S, O]. Of the newest token [1, I] to [1, O], where what is divided is the same.
  Tensor forward(ops::Tape& tape, const Operand& x, const Pass& pass) const;
  /// The product alone: the ranks exchange nothing, and nothing is recomputed.
  Tensor forward(ops::Tape& tape, const Operand& x) const { return forward(tape, x, Pass()); }

 private:
  ops::LinearWeight weight(ops::Tape& tape) const;
  Tensor of_gathered(ops::Tape& tape, const Operand& x, const Pass& pass) const;
  Tensor summed(ops::Tape& tape, const Operand& x, const Pass& pass) const;
  Tensor of_newest(ops::Tape& tape, const Operand& x) const;
  Tensor with_bias(ops::Tape& tape, Tensor y) const;
  Tensor in_fp8(ops::Tape& tape, const Operand& x, const ops::Exchange& gather, DType out) const;

  const Weight* weight_;
  const Weight* bias_ = nullptr;
  Divided divided_ = Divided::nothing;
  DType out_;
  bool summands_ = false;                     // several ranks have inputs of it
  ops::Exchange whole_input_, whole_output_;  // if outputs are divided where inputs would be
};

}  // namespace vfm::nn
