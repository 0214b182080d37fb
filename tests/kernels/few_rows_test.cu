// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "few_rows.h"
#include "kernel_test.h"

using vfm::kernels::few_rows;
using vfm::kernels::FewRows;
using vfm::kernels::FewRowsType;
using namespace vfm::test;

namespace {

using Bf16 = __nv_bfloat16;

FewRowsType type_of(float) {
  return FewRowsType::f32;
}
FewRowsType type_of(Bf16) {
  return FewRowsType::bf16;
}
FewRowsType type_of(std::int8_t) {
  return FewRowsType::int8;
}

// A matrix, of codes the scales, and its bias.
template <class T>
struct Matrix {
  int columns, outputs;
  std::vector<T> host;
  std::vector<float> scales, bias;
  DeviceArray<T> w;
  DeviceArray<float> of_scales, of_bias;

  Matrix(int columns_in, int outputs_in)
      : columns(columns_in),
        outputs(outputs_in),
        host(values()),
        scales(noise(static_cast<std::size_t>(outputs), 2)),
        bias(noise(static_cast<std::size_t>(outputs), 3)),
        w(host),
        of_scales(scales),
        of_bias(bias) {}

  std::vector<T> values() const {
    const auto made = noise(static_cast<std::size_t>(columns) * outputs, 1);
    if constexpr (sizeof(T) > 1) return as<T>(made);
    std::vector<T> codes;
    for (const float v : made)
      codes.push_back(static_cast<T>(std::clamp(40 * v, -127.f, 127.f)));
    return codes;
  }
};

template <class T>
float number(T v) {
  if constexpr (sizeof(T) == 1)
    return static_cast<float>(v);
  else
    return value(v);
}

template <class T>
std::vector<float> run(const Matrix<T>& m, const std::vector<float>& x, int rows, bool scaled,
                       bool biased) {
  const DeviceArray<float> dx(x), y(static_cast<std::size_t>(rows) * m.outputs);
  FewRows call;
  call.x = dx.get(), call.w = m.w.get(), call.y = y.get();
  call.type = type_of(T{});
  call.scales = scaled ? m.of_scales.get() : nullptr;
  call.bias = biased ? m.of_bias.get() : nullptr;
  call.rows = rows, call.columns = m.columns, call.outputs = m.outputs;
  need(few_rows(call, nullptr), "few rows");
  return y.host();
}

template <class T>
void compare(Checker& checker, int rows, int columns, int outputs, bool scaled, bool biased) {
  const Matrix<T> m(columns, outputs);
  const auto x = noise(static_cast<std::size_t>(rows) * columns, 4);
  std::vector<double> expected;
  for (int row = 0; row < rows; ++row)
    for (int o = 0; o < outputs; ++o) {
      double sum = 0;
      for (int k = 0; k < columns; ++k)
        sum += double{number(m.host[o * static_cast<std::size_t>(columns) + k])} *
               x[row * static_cast<std::size_t>(columns) + k];
      const auto at = static_cast<std::size_t>(o);
      expected.push_back(sum * (scaled ? m.scales[at] : 1.) + (biased ? m.bias[at] : 0.));
    }
  const std::string name = std::to_string(sizeof(T)) + " bytes, " + std::to_string(rows) + " x " +
                           std::to_string(columns) + " x " + std::to_string(outputs);
  checker.close(name, run(m, x, rows, scaled, biased), expected, 2e-6);
}

// A row has the same bits alone, and beside any number of others.
template <class T>
void compare_companies(Checker& checker, int columns, int outputs) {
  constexpr int kMost = 17;
  const Matrix<T> m(columns, outputs);
  const auto x = noise(static_cast<std::size_t>(kMost) * columns, 5);
  const auto all = run(m, x, kMost, true, true);
  for (const int rows : {1, 2, 3, 4, 5, 8, 9, 16}) {
    const int first = kMost - rows;  // each row at another place
    const auto some = run(m, std::vector<float>(x.begin() + std::int64_t{first} * columns, x.end()),
                          rows, true, true);
    checker.check("the bits of " + std::to_string(rows) + " rows of " + std::to_string(columns),
                  std::memcmp(some.data(), all.data() + static_cast<std::size_t>(first) * outputs,
                              some.size() * sizeof(float)) == 0);
  }
}

template <class T>
void tests_of(Checker& checker) {
  for (const int columns : {1, 3, 4, 130, 260}) {
    compare<T>(checker, 1, columns, 1, false, false);
    compare<T>(checker, 3, columns, 19, true, true);
    compare<T>(checker, 8, columns, 16, false, true);
    compare<T>(checker, 11, columns, 5, true, false);
  }
  if (!small()) compare<T>(checker, 8, 3584, 1000, true, true);
  compare_companies<T>(checker, 132, 21);
  compare_companies<T>(checker, 35, 6);
}

void tests(Checker& checker) {
  tests_of<float>(checker);
  tests_of<Bf16>(checker);
  tests_of<std::int8_t>(checker);
  FewRows bad;
  bad.rows = -1;
  checker.check("rows below zero are refused", few_rows(bad, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error", few_rows(FewRows{}, nullptr) == 0);
  if (!timed()) return;
  for (const int rows : {1, 8}) {
    const Matrix<Bf16> m(3584, 18944);  // of Qwen2.5-VL 7B
    const DeviceArray<float> x(noise(static_cast<std::size_t>(rows) * m.columns, 1)),
        y(static_cast<std::size_t>(rows) * m.outputs);
    FewRows call;
    call.x = x.get(), call.w = m.w.get(), call.y = y.get(), call.type = FewRowsType::bf16;
    call.rows = rows, call.columns = m.columns, call.outputs = m.outputs;
    time_launch("few rows bf16, " + std::to_string(rows), 2. * m.columns * m.outputs,
                2. * rows * m.columns * m.outputs, [&] { return few_rows(call, nullptr); });
  }
}

}  // namespace

int main() {
  return vfm::test::run(tests);
}
