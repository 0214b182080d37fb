// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/rmsnorm_cuda.h"

#include "base/error.h"
#include "kernels/rmsnorm.h"
#include "tensor/device.h"

namespace vfm::ops {

Tensor rmsnorm_forward_cuda(const Tensor& x, const Tensor& weight, float epsilon) {
  if (x.dtype() != DType::f32 || weight.dtype() != DType::f32 || weight.shape() != Shape{x.size(1)})
    fail("rmsnorm: x {} {}, weight {}", dtype_name(x.dtype()), to_string(x.shape()),
         to_string(weight.shape()));
  const Tensor y(x.shape(), DType::f32, Device::cuda);
  kernels::RmsnormForward call;
  call.tokens = x.size(0);
  call.width = static_cast<int>(x.size(1));
  call.epsilon = epsilon;
  call.x = x.data<float>();
  call.weight = weight.data<float>();
  call.y = y.data<float>();
  check_gpu(kernels::rmsnorm_forward(call, compute_stream()), "run rmsnorm");
  return y;
}

void rmsnorm_backward_cuda(Tape& tape, const Tensor& dy, const Tensor& x, const Tensor& weight,
                           float epsilon) {
  const Tensor dx = dy.unique() ? dy : Tensor(x.shape(), DType::f32, Device::cuda);
  kernels::RmsnormBackward call;
  call.tokens = x.size(0);
  call.width = static_cast<int>(x.size(1));
  call.epsilon = epsilon;
  call.x = x.data<float>();
  call.weight = weight.data<float>();
  call.dy = dy.data<float>();
  call.dx = dx.data<float>();
  Tensor dweight, partial;
  if (tape.wants_grad(weight)) {
    const std::int64_t chunks = (x.size(0) + kernels::kRmsnormChunk - 1) / kernels::kRmsnormChunk;
    dweight = Tensor(weight.shape(), DType::f32, Device::cuda);
    partial = Tensor({chunks, x.size(1)}, DType::f32, Device::cuda);
    call.dweight = dweight.data<float>();
    call.partial = partial.data<float>();
  }
  check_gpu(kernels::rmsnorm_backward(call, compute_stream()), "run rmsnorm backward");
  if (dweight.defined()) tape.accumulate(weight, dweight);
  tape.accumulate(x, dx);
}

}  // namespace vfm::ops
