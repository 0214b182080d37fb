// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "fp8_reference.h"
#include "kernel_test.h"
#include "quantize_rows.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Rows {
  std::vector<std::uint8_t> values;
  std::vector<float> scales;
};

double number_of(std::uint8_t code, bool e4m3) {
  return e4m3 ? fp8_value(code) : static_cast<double>(static_cast<std::int8_t>(code));
}

std::uint8_t code_of(float scaled, bool e4m3) {
  if (e4m3) return fp8_code_of(scaled);
  if (std::isnan(scaled)) return 0;
  return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::nearbyint(scaled)));
}

// By the definition, row by row.
template <class T>
Rows reference(const std::vector<T>& x, std::size_t columns, bool e4m3) {
  Rows rows;
  for (std::size_t begin = 0; begin < x.size(); begin += columns) {
    float largest = 0;
    bool bad = false;
    for (std::size_t i = begin; i < begin + columns; ++i) {
      bad = bad || !std::isfinite(value(x[i]));
      largest = std::max(largest, std::abs(value(x[i])));
    }
    const float code = e4m3 ? 448 : 127, none = std::nanf("");
    const float range = std::max(largest, 0x1p-40f);
    rows.scales.push_back(bad ? none : range / code);
    const float inverse = bad ? none : code / range;
    for (std::size_t i = begin; i < begin + columns; ++i)
      rows.values.push_back(code_of(value(x[i]) * inverse, e4m3));
  }
  return rows;
}

// The same numbers: NaN is one, whatever its bits.
bool same(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// `shift`: elements by which x, and bytes by which the codes, miss the alignment. The largest
// magnitudes are those of two parts, of which the second has nothing to say.
template <class T>
void check(Checker& checker, const std::string& name, const std::vector<float>& numbers,
           std::size_t columns, bool e4m3, std::size_t shift = 0) {
  const std::vector<T> x = as<T>(numbers);
  const std::size_t rows = x.size() / columns;
  std::vector<T> shifted(shift);
  shifted.insert(shifted.end(), x.begin(), x.end());
  const DeviceArray<T> from(shifted), back(x.size() + shift + 1);
  const DeviceArray<std::uint8_t> values(x.size() + shift + 1);
  const DeviceArray<float> scales(rows);
  const DeviceArray<std::uint32_t> largest(std::vector<std::uint32_t>(2 * rows));
  QuantizeRows call;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.e4m3 = e4m3;
  call.x = from.get() + shift;
  call.rows = static_cast<std::int64_t>(rows);
  call.columns = static_cast<std::int64_t>(columns);
  call.values = values.get() + shift;
  call.scales = scales.get();
  call.largest = largest.get();
  need(largest_of_rows(call, nullptr), "largest_of_rows");
  call.parts = 2;
  need(quantize_rows(call, nullptr), "quantize_rows");
  call.x = back.get() + shift;
  need(dequantize_rows(call, nullptr), "dequantize_rows");

  const Rows expected = reference(x, columns, e4m3);
  const std::vector<std::uint8_t> codes = values.host();
  const std::vector<float> by = scales.host();
  const std::vector<T> made = back.host();
  const T untouched = DeviceArray<T>(1).host()[0];
  std::size_t wrong = 0;
  for (std::size_t row = 0; row < rows; ++row)
    wrong += !same(by[row], expected.scales[row]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint8_t code = codes[shift + i];
    wrong += code != expected.values[i];
    const float number = by[i / columns] * static_cast<float>(number_of(code, e4m3));
    wrong += !same(value(made[shift + i]), value(as<T>({number})[0]));
  }
  wrong += codes.back() != 0xff;  // nobody may write behind them
  wrong += std::memcmp(&made.back(), &untouched, sizeof(T)) != 0;
  checker.check(name + (e4m3 ? " E4M3" : " int8") + (sizeof(T) == 2 ? " bf16 " : " f32 ") +
                    std::to_string(rows) + " x " + std::to_string(columns) +
                    (shift ? " shifted" : "") + ": " + std::to_string(wrong) + " wrong",
                wrong == 0);
}

template <class T>
void check_type(Checker& checker) {
  for (const bool e4m3 : {false, true}) {
    for (const std::size_t columns : {1, 15, 16, 17, 64, 4096, 4099, 4112})
      for (const std::size_t shift : {0, 1})
        check<T>(checker, "noise", noise(3 * columns, 7), columns, e4m3, shift);
    // Halves between codes, of rows whose scale is 1.
    std::vector<float> halves;
    for (int i = -126; i < 127; ++i)
      halves.push_back(static_cast<float>(i) + 0.5f);
    for (int code = 0; code < 126; ++code)
      halves.push_back(static_cast<float>((fp8_values()[static_cast<std::size_t>(code)] +
                                           fp8_values()[static_cast<std::size_t>(code) + 1]) /
                                          2));
    halves.push_back(e4m3 ? 448.f : 127.f);
    if (!e4m3)
      for (float& v : halves)
        v = std::min(v, 127.f);
    check<T>(checker, "halfway", halves, halves.size(), e4m3);
    std::vector<float> damaged = noise(5 * 80, 5);
    damaged[85] = std::nanf("");
    damaged[170] = INFINITY;
    damaged[319] = -INFINITY;
    std::fill_n(damaged.begin() + 320, 80, 0.f);
    check<T>(checker, "NaN, infinity and zeros", damaged, 80, e4m3);
    check<T>(checker, "tiny", std::vector<float>(64, 1e-30f), 32, e4m3);
    check<T>(checker, "huge", std::vector<float>{3e38f, -1e38f, 1.f, 0.f}, 4, e4m3);
  }
}

void check_arguments(Checker& checker) {
  QuantizeRows call;
  for (const auto run : {largest_of_rows, quantize_rows, dequantize_rows}) {
    call.rows = 0;
    checker.check("no rows", run(call, nullptr) == cudaSuccess);
    call.rows = -1;
    checker.check("rows below zero", run(call, nullptr) == cudaErrorInvalidValue);
    call.rows = std::int64_t{1} << 31;
    checker.check("too many rows", run(call, nullptr) == cudaErrorInvalidValue);
  }
}

void time_bf16(Checker&) {
  constexpr std::size_t kRows = 16384, kColumns = 4096, kCount = kRows * kColumns;
  const DeviceArray<__nv_bfloat16> x(as<__nv_bfloat16>(noise(kCount, 1)));
  const DeviceArray<std::uint8_t> values(kCount);
  const DeviceArray<float> scales(kRows);
  const DeviceArray<std::uint32_t> largest(kRows);
  for (const bool e4m3 : {false, true}) {
    const QuantizeRows call{Type::bf16, e4m3,         x.get(),      kRows,
                            kColumns,   values.get(), scales.get(), largest.get()};
    need(largest_of_rows(call, nullptr), "largest_of_rows");
    time_launch("quantize 16384 x 4096 bf16 by rows", 3.0 * kCount, 0,
                [&] { return quantize_rows(call, nullptr); });
    time_launch("make them bf16 again", 3.0 * kCount, 0,
                [&] { return dequantize_rows(call, nullptr); });
  }
}

void tests(Checker& checker) {
  check_type<float>(checker);
  check_type<__nv_bfloat16>(checker);
  check_arguments(checker);
  if (timed()) time_bf16(checker);
}

}  // namespace

int main() {
  return run(tests);
}
