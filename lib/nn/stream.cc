// SPDX-License-Identifier: Apache-2.0
#include "nn/stream.h"

#include "base/error.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"

namespace vfm::nn {

void Stream::add(Tensor made) {
  if (branch.defined()) fail("no norm has added the last branch to the stream");
  branch = std::move(made);
}

Tensor Stream::sum(ops::Tape& tape) const {
  if (branch.defined() && gates.defined()) {
    ops::ModulateInput input = pending(rows, Tensor());
    input.out = branch.dtype();
    return ops::gated_residual(tape, input);
  }
  Tensor all = x;
  if (branch.defined()) all = ops::add(tape, all, ops::cast(tape, branch, DType::f32));
  return extra.defined() ? ops::add(tape, all, extra) : all;
}

void Stream::settle(ops::Tape& tape) {
  x = sum(tape);
  branch = gates = extra = Tensor();
}

ops::ModulateInput Stream::pending(const ops::RowMap& of_tokens, const Tensor& ones) const {
  ops::ModulateInput input;
  input.x = x;
  input.extra = extra;
  input.rows = of_tokens;
  if (!branch.defined()) return input;
  if (!gates.defined() && !ones.defined())
    fail("a branch has no gates, and Conditions::ones is not set");
  input.branch = branch;
  input.gate = gates.defined() ? gates : ones;
  input.gate_column = gates.defined() ? gate_column : 0;
  return input;
}

}  // namespace vfm::nn
