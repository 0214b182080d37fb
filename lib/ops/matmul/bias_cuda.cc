// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/text_rows.h"
#include "ops/matmul/bias_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"
#include "tensor/tensor.h"

namespace vfm::ops {

static_assert(kBiasParts == kernels::kConvBiasParts);

void cuda::add_bias(DType type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
                    std::int64_t width) {
  check_gpu(kernels::add_bias(kernel_type(type), y, rows, stride, bias, width, compute_stream()),
            "add a bias");
}

// As for convolutions, whose result has a pixel for each row.
void cuda::bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t width,
                         float* sum) {
  const Tensor partial({kBiasParts, width}, DType::f32, Device::cuda);
  check_gpu(kernels::conv_bias(kernel_type(type), dy, rows, static_cast<int>(width),
                               partial.data<float>(), sum, compute_stream()),
            "sum the gradient of a bias");
}

}  // namespace vfm::ops
