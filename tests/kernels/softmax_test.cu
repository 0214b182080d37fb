// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernel_test.h"
#include "softmax.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

template <class T>
void compare(Checker& checker, int rows, int columns, float scale) {
  const auto size = static_cast<std::size_t>(rows) * columns;
  auto s = noise(size, 1), dp = noise(size, 2);
  for (float& v : s)
    v *= 30;  // a maximum that moves
  const DeviceArray<float> ds(s), ddp(dp);
  const DeviceArray<T> p(size), back(size);
  const Type type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  need(softmax_rows(ds.get(), type, p.get(), rows, columns, scale, nullptr), "softmax");
  need(softmax_rows_backward(type, p.get(), ddp.get(), back.get(), rows, columns, scale, nullptr),
       "backward");
  const std::vector<T> made = p.host();
  std::vector<double> expected, gradients;
  for (int row = 0; row < rows; ++row) {
    const std::size_t at = static_cast<std::size_t>(row) * columns;
    double top = -1e30, sum = 0, mean = 0;
    for (int i = 0; i < columns; ++i)
      top = std::max(top, double{s[at + i]});
    for (int i = 0; i < columns; ++i)
      sum += std::exp(scale * (s[at + i] - top));
    for (int i = 0; i < columns; ++i) {
      expected.push_back(std::exp(scale * (s[at + i] - top)) / sum);
      mean += double{value(made[at + i])} * dp[at + i];  // of what was rounded
    }
    for (int i = 0; i < columns; ++i)
      gradients.push_back(scale * value(made[at + i]) * (dp[at + i] - mean));
  }
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") + std::to_string(rows) +
                           " x " + std::to_string(columns);
  checker.close(name, made, expected, sizeof(T) == 2 ? 4e-3 : 2e-6);
  checker.close(name + " backward", back.host(), gradients, sizeof(T) == 2 ? 8e-3 : 2e-6);
}

void test_hard_numbers(Checker& checker) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> s(2 * 1028, -infinity);
  s[700] = 3, s[701] = 3;       // all others of the first row are impossible
  s[1028 + 5] = std::nanf("");  // and the second is not a row of numbers
  for (int i = 0; i < 1028; ++i)
    if (i != 5) s[static_cast<std::size_t>(1028 + i)] = 1e30f;
  const DeviceArray<float> p(s);
  need(softmax_rows(p.get(), Type::f32, p.get(), 2, 1028, 1, nullptr), "softmax");
  std::vector<double> expected(2 * 1028, 0.);
  expected[700] = expected[701] = 0.5;
  for (int i = 0; i < 1028; ++i)
    expected[static_cast<std::size_t>(1028 + i)] = std::nan("");
  checker.close("impossible scores, and NaN, in place", p.host(), expected, 1e-6);
}

void tests(Checker& checker) {
  for (const int columns : {1, 3, 4, 35, 1027, 2052}) {
    compare<float>(checker, 3, columns, 0.125f);
    compare<__nv_bfloat16>(checker, 3, columns, 0.125f);
  }
  if (!small()) compare<__nv_bfloat16>(checker, 64, 14080, 0.044f);
  test_hard_numbers(checker);
  checker.check("sizes below zero are refused", softmax_rows(nullptr, Type::f32, nullptr, -1, 4, 1,
                                                             nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error",
                softmax_rows(nullptr, Type::f32, nullptr, 0, 4, 1, nullptr) == 0);
}

}  // namespace

int main() {
  return run(tests);
}
