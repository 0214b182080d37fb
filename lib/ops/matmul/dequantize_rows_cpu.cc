// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/bytes.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

/// f8e4m3_to_float() of base/float8.h.
VFM_INLINE float e4m3_number(std::uint8_t code) {
  const std::uint32_t magnitude = code & 0x7fu;
  const std::uint32_t small = float_to_bits(static_cast<float>(magnitude) * 0x1p-9f);
  const std::uint32_t normal = magnitude == 0x7fu ? 0x7fc00000u : (magnitude + (120u << 3)) << 20;
  return bits_to_float((code & 0x80u) << 24 | (magnitude < 8 ? small : normal));
}

template <class T>
void rows_of(const RowCodes& c, T* x) {
#pragma omp parallel for schedule(static) if (c.rows * c.columns > kAlone)
  for (std::int64_t row = 0; row < c.rows; ++row) {
    const std::uint8_t* const codes = c.codes + row * c.columns;
    const float scale = c.scales[row];
    T* const to = x + row * c.columns;
    if (c.e4m3) {
#pragma omp simd
      for (std::int64_t i = 0; i < c.columns; ++i)
        store(to + i, scale * e4m3_number(codes[i]));
    } else {
      const auto* const numbers = reinterpret_cast<const std::int8_t*>(codes);
      std::int64_t i = 0;
      for (; i + kWidth <= c.columns; i += kWidth)
        store(to + i, (Native)(lanes_of(widen_bytes(numbers + i)) * scale));
      for (; i < c.columns; ++i)
        store(to + i, scale * static_cast<float>(numbers[i]));
    }
  }
}

}  // namespace

void dequantize_rows(const RowCodes& c, DType type, void* x) {
  by_type(type, [&](auto t) { rows_of(c, static_cast<decltype(t)*>(x)); });
}

}  // namespace vfm::ops::VFM_ISA
