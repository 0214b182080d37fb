// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/quantize.h"

#include <cmath>

#include "base/error.h"
#include "ops/matmul/fp8_scale.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/pointwise/pointwise_kernels.h"
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

namespace {

void check_matrix(const Tensor& x) {
  if (x.dims() != 2 || (x.dtype() != DType::f32 && x.dtype() != DType::bf16))
    fail("quantize_rows: {} {} is not a matrix of f32 or bf16", dtype_name(x.dtype()),
         to_string(x.shape()));
}

}  // namespace

std::string_view row_format_name(RowFormat format) {
  return format == RowFormat::int8 ? "int8" : "e4m3";
}

RowFormat parse_row_format(std::string_view name) {
  if (name == "int8") return RowFormat::int8;
  if (name == "e4m3") return RowFormat::e4m3;
  fail_usage("unknown format of weights '{}': there are int8 and e4m3", name);
}

Tensor largest_of_rows(const Tensor& x) {
  check_matrix(x);
  const Tensor largest({x.size(0)}, DType::i32, x.device());
  VFM_RUN(Touching(x, largest), largest_of_rows, x, largest);
  return largest;
}

QuantizedRows quantize_rows(const Tensor& x, const Tensor& largest, RowFormat format) {
  check_matrix(x);
  if (largest.dtype() != DType::i32 || largest.elements() == 0 || largest.size(-1) != x.size(0) ||
      largest.device() != x.device())
    fail("quantize_rows: the largest magnitudes of {} are {} {}", to_string(x.shape()),
         dtype_name(largest.dtype()), to_string(largest.shape()));
  const DType code = format == RowFormat::int8 ? DType::u8 : DType::f8e4m3;
  const QuantizedRows rows{Tensor(x.shape(), code, x.device()),
                           Tensor({x.size(0)}, DType::f32, x.device())};
  VFM_RUN(Touching(x, largest, rows.values, rows.scales), quantize_rows, x, largest, rows);
  return rows;
}

Tensor dequantize_rows(const QuantizedRows& rows, DType dtype) {
  const Tensor &values = rows.values, &scales = rows.scales;
  const bool codes = values.dtype() == DType::u8 || values.dtype() == DType::f8e4m3;
  if (!codes || values.dims() != 2 || scales.dtype() != DType::f32 ||
      scales.shape() != Shape{values.size(0)} || scales.device() != values.device())
    fail("dequantize_rows: {} {} with scales {} {}", dtype_name(values.dtype()),
         to_string(values.shape()), dtype_name(scales.dtype()), to_string(scales.shape()));
  const Tensor x(values.shape(), dtype, values.device());
  check_matrix(x);
  const RowCodes from{values.data<std::uint8_t>(), scales.data<float>(),
                      values.dtype() == DType::f8e4m3, x.size(0), x.size(1)};
  VFM_RUN(Touching(values, scales, x), dequantize_rows, from, dtype, x.raw());
  return x;
}

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
