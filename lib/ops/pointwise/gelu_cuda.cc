// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "ops/pointwise/gelu_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {
namespace {

kernels::GeluKind gelu_kind(Gelu kind) {
  return kind == Gelu::tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf;
}

}  // namespace

void gelu_forward(DType type, Gelu kind, const void* x, void* y, std::int64_t n) {
  check_gpu(kernels::gelu_forward(kernel_type(type), gelu_kind(kind), x, y, n, compute_stream()),
            "run gelu");
}

void gelu_backward(DType type, Gelu kind, const void* x, const void* dy, void* dx, void* y,
                   std::int64_t n) {
  check_gpu(
      kernels::gelu_backward(kernel_type(type), gelu_kind(kind), x, dy, dx, y, n, compute_stream()),
      "run gelu backward");
}

}  // namespace vfm::ops::cuda
