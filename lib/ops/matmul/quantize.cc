// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/quantize.h"

#include "base/error.h"
#include "ops/matmul/quantize_cpu.h"
#include "ops/matmul/quantize_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

Quantized quantize(const Tensor& x) {
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("quantize: {} is neither f32 nor bf16", dtype_name(x.dtype()));
  const Quantized result{Tensor(x.shape(), DType::f8e4m3, x.device()),
                         Tensor({1}, DType::f32, x.device())};
  if (x.device() == Device::cpu) {
    quantize_cpu(x, result);
  } else if constexpr (kHaveCuda) {
    quantize_cuda(x, result);
  }
  return result;
}

}  // namespace vfm::ops
