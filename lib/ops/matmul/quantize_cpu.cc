// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/fp8_scale.h"
#include "ops/matmul/quantize_kernels.h"
#include "ops/pointwise/gelu_kernels.h"

namespace vfm::ops {
namespace {

constexpr std::int64_t kAlone = 32768;  // fewer elements wake no other thread

template <class T>
void quantize_as(const T* x, std::int64_t n, std::uint8_t* values, float* scale) {
  std::uint32_t largest = 0;
#pragma omp parallel for reduction(max : largest) schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    largest = std::max(largest, magnitude_bits(widened(x[i])));
  const Fp8Scale by = fp8_scale(largest);
  *scale = by.scale;
#pragma omp parallel for schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = float_to_f8e4m3(widened(x[i]) * by.inverse);
}

}  // namespace

void cpu::quantize(const Tensor& x, const Quantized& result) {
  auto* values = result.values.data<std::uint8_t>();
  float* scale = result.scale.data<float>();
  if (x.dtype() == DType::f32)
    quantize_as(x.data<float>(), x.elements(), values, scale);
  else
    quantize_as(x.data<std::uint16_t>(), x.elements(), values, scale);
}

void cpu::quantize_gelu(const Tensor& x, const Quantized& result) {
  const Tensor y(x.shape(), x.dtype());
  gelu_forward(x.dtype(), static_cast<const void*>(x.raw()), y.raw(), x.elements());
  quantize(y, result);
}

}  // namespace vfm::ops
