// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/fp8_scale.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/pointwise/pointwise_kernels.h"

namespace vfm::ops {
namespace {

constexpr std::int64_t kAlone = 32768;  // fewer elements wake no other thread

template <class T>
std::uint32_t largest_of(const T* x, std::int64_t n) {
  std::uint32_t largest = 0;
#pragma omp parallel for reduction(max : largest) schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    largest = std::max(largest, magnitude_bits(widened(x[i])));
  return largest;
}

template <class T>
void quantize_as(const T* x, std::int64_t n, std::uint32_t largest, std::uint8_t* values,
                 float* scale) {
  const Fp8Scale by = fp8_scale(largest);
  *scale = by.scale;
#pragma omp parallel for schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = float_to_f8e4m3(widened(x[i]) * by.inverse);
}

std::uint32_t largest_of(const Tensor& x) {
  return x.dtype() == DType::f32 ? largest_of(x.data<float>(), x.elements())
                                 : largest_of(x.data<std::uint16_t>(), x.elements());
}

void quantize_by(const Tensor& x, std::uint32_t largest, const Quantized& result) {
  auto* values = result.values.data<std::uint8_t>();
  float* scale = result.scale.data<float>();
  if (x.dtype() == DType::f32)
    quantize_as(x.data<float>(), x.elements(), largest, values, scale);
  else
    quantize_as(x.data<std::uint16_t>(), x.elements(), largest, values, scale);
}

}  // namespace

void cpu::quantize(const Tensor& x, const Quantized& result) {
  quantize_by(x, largest_of(x), result);
}

void cpu::largest_magnitude(const Tensor& x, const Tensor& largest) {
  *largest.data<std::uint32_t>() = largest_of(x);
}

void cpu::quantize_part(const Tensor& x, const Tensor& largest, const Quantized& result) {
  const auto* parts = largest.data<std::uint32_t>();
  quantize_by(x, *std::max_element(parts, parts + largest.elements()), result);
}

void cpu::quantize_gelu(const Tensor& x, const Quantized& result) {
  const Tensor y(x.shape(), x.dtype());
  activation_forward(x.dtype(), ActivationKind::gelu, static_cast<const void*>(x.raw()), y.raw(),
                     x.elements());
  quantize(y, result);
}

}  // namespace vfm::ops
