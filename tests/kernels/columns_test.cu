// Sums into columns of a wider matrix: adapters add to some outputs of a product.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "elementwise.h"
#include "kernel_test.h"

using vfm::kernels::add_scaled_columns;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

using Bf16 = __nv_bfloat16;

// Against double, the columns beside it too, which stay as they are.
template <class T>
void test_columns(Checker& checker, std::array<std::size_t, 4> sizes) {
  const auto [rows, narrow, wide, first] = sizes;
  const std::vector<T> term = as<T>(noise(rows * narrow, 1)), before = as<T>(noise(rows * wide, 2));
  const DeviceArray<T> x(term), y(before);
  need(add_scaled_columns(sizeof(T) == 2 ? Type::bf16 : Type::f32, y.get() + first,
                          static_cast<std::int64_t>(wide), x.get(),
                          static_cast<std::int64_t>(narrow), static_cast<std::int64_t>(rows), 1.5f,
                          nullptr),
       "add scaled columns");
  std::vector<double> sums;
  for (const T v : before)
    sums.push_back(value(v));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < narrow; ++j)
      sums[i * wide + first + j] += 1.5 * value(term[i * narrow + j]);
  const std::string name = std::to_string(narrow) + " of " + std::to_string(wide) + " columns";
  checker.close(name + (sizeof(T) == 2 ? ", bf16" : ", f32"), y.host(), sums,
                sizeof(T) == 2 ? 4e-3 : 1e-6);
}

void tests(Checker& checker) {
  using Sizes = std::array<std::size_t, 4>;
  for (const Sizes sizes : {Sizes{1, 1, 1, 0},
                            {3, 8, 24, 8},
                            {5, 7, 24, 3},
                            {2, 2056, 4112, 2056},
                            {4, 8, 17, 8},
                            {3, 16, 16, 0}}) {
    test_columns<float>(checker, sizes);
    test_columns<Bf16>(checker, sizes);
  }
  const DeviceArray<float> a(8);
  float* const p = a.get();
  checker.check("no rows are no error",
                add_scaled_columns(Type::bf16, p, 4, p, 4, 0, 1, nullptr) == 0);
  checker.check("columns that are not there are refused",
                add_scaled_columns(Type::f32, p, 4, p, 8, 2, 1, nullptr) == cudaErrorInvalidValue);
  checker.check("a size below zero is refused",
                add_scaled_columns(Type::f32, p, 4, p, 4, -1, 1, nullptr) == cudaErrorInvalidValue);
}

}  // namespace

int main() {
  return run(tests);
}
