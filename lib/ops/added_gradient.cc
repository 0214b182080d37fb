// SPDX-License-Identifier: Apache-2.0
#include "ops/added_gradient.h"

#include "tensor/device.h"

namespace vfm::ops {

AddedGradient::AddedGradient(Tape& tape, const Tensor& of) : tape_(tape), of_(of) {
  if (!tape.wants_grad(of)) return;
  const Tape::Sum sum = tape.sum_of(of);
  own_ = !sum.tensor.defined();
  tensor_ = own_ ? Tensor(of.shape(), DType::f32, of.device()) : sum.tensor;
  if (!sum.add) zero_bytes(tensor_.raw(), tensor_.device(), tensor_.bytes());
}

}  // namespace vfm::ops
