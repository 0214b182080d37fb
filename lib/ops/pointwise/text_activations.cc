// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/text_activations.h"

#include "base/error.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const Tape& tape, const Tensor& x, const char* name) {
  if (tape.recording()) fail("{} has no gradient: it is for inference, without recording", name);
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("{} of {}", name, dtype_name(x.dtype()));
}

}  // namespace

void relu_in_place(Tape& tape, const Tensor& x) {
  check(tape, x, "relu in place");
  VFM_RUN(Touching(x, x), relu, x.dtype(), x.raw(), x.elements());
}

void activate_in_place(Tape& tape, const Tensor& x, ActivationKind kind) {
  check(tape, x, "gelu in place");
  VFM_RUN(Touching(x, x), activation_forward, x.dtype(), kind, x.raw(), x.raw(), x.elements());
}

void gated_gelu_in_place(Tape& tape, const Tensor& x, const Tensor& factor) {
  check(tape, x, "gated gelu in place");
  if (factor.dtype() != x.dtype() || factor.device() != x.device() ||
      factor.elements() != x.elements())
    fail("gated gelu: {} {} does not fit {} {}", dtype_name(factor.dtype()),
         to_string(factor.shape()), dtype_name(x.dtype()), to_string(x.shape()));
  VFM_RUN(Touching(x, x, factor), gated_gelu, x.dtype(), x.raw(), factor.raw(), x.elements());
}

}  // namespace vfm::ops
