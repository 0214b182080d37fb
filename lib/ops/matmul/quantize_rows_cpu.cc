// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/matmul/fp8_scale.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops {
namespace {

constexpr float kLargestInt8 = 127;

/// fp8_scale(), with the largest code of the format.
Fp8Scale row_scale(std::uint32_t largest, bool e4m3) {
  if (e4m3) return fp8_scale(largest);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (largest >= 0x7f800000u) return {kNan, kNan};
  const float range = std::max(std::bit_cast<float>(largest), 0x1p-40f);
  return {range / kLargestInt8, kLargestInt8 / range};
}

std::uint8_t code_of(float scaled, bool e4m3) {
  if (e4m3) return float_to_f8e4m3(scaled);
  if (std::isnan(scaled)) return 0;  // its scale is NaN
  const float whole = std::nearbyint(std::clamp(scaled, -kLargestInt8, kLargestInt8));
  return static_cast<std::uint8_t>(static_cast<std::int8_t>(whole));
}

template <class T>
void largest_as(const Tensor& x, std::uint32_t* largest) {
  const std::int64_t rows = x.size(0), columns = x.size(1);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const from = x.data<T>() + row * columns;
    std::uint32_t most = 0;
    for (std::int64_t i = 0; i < columns; ++i)
      most = std::max(most, magnitude_bits(widened(from[i])));
    largest[row] = most;
  }
}

template <class T>
void quantize_rows_as(const Tensor& x, const Tensor& largest, const QuantizedRows& to) {
  const std::int64_t rows = x.size(0), columns = x.size(1), all = largest.elements();
  const bool e4m3 = to.values.dtype() == DType::f8e4m3;
  const auto* const bits = largest.data<std::uint32_t>();
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::uint32_t most = 0;
    for (std::int64_t part = row; part < all; part += rows)
      most = std::max(most, bits[part]);
    const Fp8Scale by = row_scale(most, e4m3);
    to.scales.data<float>()[row] = by.scale;
    const T* const from = x.data<T>() + row * columns;
    auto* const codes = to.values.data<std::uint8_t>() + row * columns;
    for (std::int64_t i = 0; i < columns; ++i)
      codes[i] = code_of(widened(from[i]) * by.inverse, e4m3);
  }
}

}  // namespace

void cpu::largest_of_rows(const Tensor& x, const Tensor& largest) {
  auto* const bits = largest.data<std::uint32_t>();
  x.dtype() == DType::f32 ? largest_as<float>(x, bits) : largest_as<std::uint16_t>(x, bits);
}

void cpu::quantize_rows(const Tensor& x, const Tensor& largest, const QuantizedRows& rows) {
  x.dtype() == DType::f32 ? quantize_rows_as<float>(x, largest, rows)
                          : quantize_rows_as<std::uint16_t>(x, largest, rows);
}

}  // namespace vfm::ops
