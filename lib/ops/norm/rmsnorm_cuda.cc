// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm.h"
#include "ops/norm/rmsnorm_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& y) {
  kernels::RmsnormForward call;
  call.tokens = x.size(0);
  call.width = static_cast<int>(x.size(1));
  call.epsilon = epsilon;
  call.x = x.data<float>();
  call.weight = weight.data<float>();
  call.y = y.data<float>();
  check_gpu(kernels::rmsnorm_forward(call, compute_stream()), "run rmsnorm");
}

void cuda::rmsnorm_backward(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& dy,
                            const Tensor& dx, const Tensor& dweight) {
  kernels::RmsnormBackward call;
  call.tokens = x.size(0);
  call.width = static_cast<int>(x.size(1));
  call.epsilon = epsilon;
  call.x = x.data<float>();
  call.weight = weight.data<float>();
  call.dy = dy.data<float>();
  call.dx = dx.data<float>();
  Tensor partial;
  if (dweight.defined()) {
    static_assert(kRmsnormChunk == kernels::kRmsnormChunk);
    const std::int64_t chunks = (x.size(0) + kRmsnormChunk - 1) / kRmsnormChunk;
    partial = Tensor({chunks, x.size(1)}, DType::f32, Device::cuda);
    call.dweight = dweight.data<float>();
    call.partial = partial.data<float>();
  }
  check_gpu(kernels::rmsnorm_backward(call, compute_stream()), "run rmsnorm backward");
}

}  // namespace vfm::ops
