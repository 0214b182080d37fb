// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/float8.h"
#include "ops/cpu/isa.h"
#include "ops/matmul/quantize.h"
#include "support/noise.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

QuantizedRows quantized(const Tensor& x, RowFormat format) {
  return quantize_rows(x, largest_of_rows(x), format);
}

double error_of(const Tensor& x, RowFormat format) {
  const Tensor back = dequantize_rows(quantized(x, format), DType::f32);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.floats().size(); ++i) {
    const double v = x.floats()[i], d = back.floats()[i] - v;
    difference += d * d, size += v * v;
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("rows of 8 bits: codes and scales are those that the definition gives") {
  const Tensor x = Tensor::from(std::vector{127.f, -63.5f, 0.4f, -2.f, 0.75f, 0.f}, {2, 3});
  const QuantizedRows whole = quantized(x, RowFormat::int8);
  CHECK(whole.scales.floats()[0] == 1);
  CHECK(whole.scales.floats()[1] == 2.f / 127);
  const auto* codes = whole.values.data<std::int8_t>();
  // 63.5 is a tie, which goes to the even number; 0.75 is 47.6 of its row's scales.
  CHECK(std::vector<int>(codes, codes + 6) == std::vector{127, -64, 0, -127, 48, 0});
  const QuantizedRows low = quantized(x, RowFormat::e4m3);
  CHECK(low.scales.floats()[1] == 2.f / 448);
  CHECK(low.values.data<std::uint8_t>()[3] == float_to_f8e4m3(-448));
  CHECK(low.values.data<std::uint8_t>()[4] == float_to_f8e4m3(168));
}

TEST_CASE("rows of 8 bits are off by no more than half a scale, or a sixteenth of a value") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = noise_tensor({7, 300}, 3).to(dtype), wide = x.to(DType::f32);
    for (const RowFormat format : {RowFormat::int8, RowFormat::e4m3}) {
      const QuantizedRows rows = quantized(x, format);
      const Tensor back = dequantize_rows(rows, DType::f32);
      for (std::size_t i = 0; i < 2100; ++i) {
        const float v = wide.floats()[i], scale = rows.scales.floats()[i / 300];
        const float most =
            format == RowFormat::int8 ? 0.5f * scale : std::max(std::abs(v) / 16, scale * 0x1p-10f);
        CHECK(std::abs(back.floats()[i] - v) <= most * 1.0001f);
      }
      const Tensor rounded = dequantize_rows(rows, DType::bf16);
      CHECK(std::memcmp(rounded.raw(), back.to(DType::bf16).raw(), rounded.bytes()) == 0);
    }
  }
  const Tensor x = noise_tensor({64, 4096}, 5);
  CHECK(error_of(x, RowFormat::int8) == Approx(0.009).margin(0.002));
  CHECK(error_of(x, RowFormat::e4m3) == Approx(0.026).margin(0.002));
}

TEST_CASE("a row's scale is its own, and parts of a row share it") {
  Tensor x = noise_tensor({3, 64}, 7);
  x.floats()[64 + 40] = 1000;  // in the second half of the second row
  const auto columns = [&](std::size_t begin) {
    const Tensor part({3, 32});
    for (std::size_t row = 0; row < 3; ++row)
      std::copy_n(x.floats().begin() + static_cast<std::ptrdiff_t>(row * 64 + begin), 32,
                  part.floats().begin() + static_cast<std::ptrdiff_t>(row * 32));
    return part;
  };
  const Tensor halves[] = {columns(0), columns(32)};
  const Tensor largest({2, 3}, DType::i32);
  for (std::int64_t part = 0; part < 2; ++part)
    copy(largest_of_rows(halves[part]), largest.rows(part, part + 1).reshape({3}));
  for (const RowFormat format : {RowFormat::int8, RowFormat::e4m3}) {
    const QuantizedRows whole = quantized(x, format);
    CHECK(whole.scales.floats()[0] < 0.1f);
    CHECK(whole.scales.floats()[1] > 2);
    for (std::size_t part = 0; part < 2; ++part) {
      const QuantizedRows own = quantize_rows(halves[part], largest, format);
      CHECK(std::memcmp(own.scales.raw(), whole.scales.raw(), 12) == 0);
      for (std::size_t row = 0; row < 3; ++row)
        CHECK(std::memcmp(own.values.data<std::uint8_t>() + row * 32,
                          whole.values.data<std::uint8_t>() + row * 64 + part * 32, 32) == 0);
    }
  }
}

TEST_CASE("what is not finite makes its row NaN, zeros stay zeros, what does not fit is refused") {
  for (const RowFormat format : {RowFormat::int8, RowFormat::e4m3}) {
    CHECK(parse_row_format(row_format_name(format)) == format);
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      const Tensor x = Tensor::from(std::vector{1.f, bad, 2.f, 3.f, 0.f, 0.f}, {3, 2});
      const Tensor back = dequantize_rows(quantized(x, format), DType::f32);
      CHECK((std::isnan(back.floats()[0]) && std::isnan(back.floats()[1])));
      CHECK(back.floats()[3] == 3);
      CHECK((back.floats()[4] == 0 && back.floats()[5] == 0));
      const Tensor low = dequantize_rows(quantized(x, format), DType::bf16).to(DType::f32);
      CHECK((std::isnan(low.floats()[0]) && low.floats()[3] == 3));
    }
  }
  CHECK_THROWS_AS(parse_row_format("int4"), Error);
  const Tensor x = noise_tensor({3, 4}, 1);
  CHECK_THROWS_AS(largest_of_rows(x.reshape({12})), Error);
  CHECK_THROWS_AS(quantize_rows(x, largest_of_rows(x.rows(0, 2)), RowFormat::int8), Error);
  const QuantizedRows rows = quantized(x, RowFormat::int8);
  CHECK_THROWS_AS(dequantize_rows(rows, DType::f16), Error);
  CHECK_THROWS_AS(dequantize_rows({rows.values, x}, DType::f32), Error);
}

TEST_CASE("every code is the number that it stands for, on every instruction set") {
  for (const Isa limit : {Isa::base, Isa::avx2, Isa::amx}) {
    limit_isa(limit);
    for (const DType code : {DType::u8, DType::f8e4m3}) {
      const Tensor codes({1, 256}, code), scale = Tensor::from(std::vector{0.5f}, {1});
      for (int i = 0; i < 256; ++i)
        codes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
      const Tensor numbers = dequantize_rows({codes, scale}, DType::f32);
      for (int i = 0; i < 256; ++i) {
        const auto byte = static_cast<std::uint8_t>(i);
        const float wanted = code == DType::u8 ? static_cast<float>(static_cast<std::int8_t>(byte))
                                               : f8e4m3_to_float(byte);
        const float number = numbers.floats()[static_cast<std::size_t>(i)];
        CHECK((number == wanted / 2 || (std::isnan(number) && std::isnan(wanted))));
      }
    }
  }
  limit_isa(Isa::amx);
}
