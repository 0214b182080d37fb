// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/quantize.h"

#include "base/error.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check_source(const Tensor& x) {
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("quantize: {} is neither f32 nor bf16", dtype_name(x.dtype()));
}

Quantized quantized_like(const Tensor& x) {
  check_source(x);
  return {Tensor(x.shape(), DType::f8e4m3, x.device()), Tensor({1}, DType::f32, x.device())};
}

}  // namespace

// Both read x twice: the largest value is found first.

Quantized quantize(const Tensor& x) {
  const Quantized result = quantized_like(x);
  VFM_RUN(Touching(x, x, result.values), quantize, x, result);
  return result;
}

Tensor largest_magnitude(const Tensor& x) {
  check_source(x);
  const Tensor largest({1}, DType::i32, x.device());
  VFM_RUN(Touching(x), largest_magnitude, x, largest);
  return largest;
}

Quantized quantize_part(const Tensor& x, const Tensor& largest) {
  const Quantized result = quantized_like(x);
  if (largest.dtype() != DType::i32 || largest.elements() == 0 || largest.device() != x.device())
    fail("quantize_part: the largest magnitudes are {} {}", dtype_name(largest.dtype()),
         to_string(largest.shape()));
  VFM_RUN(Touching(x, result.values), quantize_part, x, largest, result);
  return result;
}

Quantized quantize_gelu(const Tensor& x) {
  const Quantized result = quantized_like(x);
  VFM_RUN(Touching(x, x, result.values).cpu_scratch([&] { return x.bytes() / sizeof(float); }),
          quantize_gelu, x, result);
  return result;
}

}  // namespace vfm::ops
