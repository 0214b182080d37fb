// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "ops/pointwise/text_activations_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void relu(DType type, void* x, std::int64_t n) {
  check_gpu(kernels::relu(kernel_type(type), x, n, compute_stream()), "run relu");
}

void gelu_in_place(DType type, Gelu kind, void* x, std::int64_t n) {
  const kernels::GeluKind which = kind == Gelu::tanh  ? kernels::GeluKind::tanh
                                  : kind == Gelu::erf ? kernels::GeluKind::erf
                                                      : kernels::GeluKind::quick;
  check_gpu(kernels::gelu_forward(kernel_type(type), which, x, x, n, compute_stream()), "run gelu");
}

void gated_gelu(DType type, void* x, const void* factor, std::int64_t n) {
  check_gpu(kernels::gated_gelu(kernel_type(type), x, factor, n, compute_stream()),
            "run gated gelu");
}

}  // namespace vfm::ops::cuda
