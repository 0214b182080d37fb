// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernel_test.h"
#include "rows.h"

using vfm::kernels::add_rows;
using vfm::kernels::gather_rows;
using vfm::kernels::RowSums;
using namespace vfm::test;

namespace {

using Bf16 = __nv_bfloat16;

// Row numbers with repetitions and gaps.
std::vector<std::int32_t> some_rows(int count, int limit) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    numbers[i] = i % 3 == 0 ? limit / 2 : static_cast<int>((i * 7919l + 3) % limit);
  return numbers;
}

// Where number i is -1, what is wanted is zero.
template <class T>
void test_gather(Checker& checker, int count, int limit, int width, int shift) {
  std::vector<float> values = noise(static_cast<std::size_t>(limit) * width, 1);
  values.insert(values.begin(), shift, 0.f);
  const std::vector<T> host = as<T>(values);
  auto numbers = some_rows(count, limit);
  for (int i = 4; i < count; i += 5)
    numbers[i] = -1;
  const DeviceArray<T> x(host), y(static_cast<std::size_t>(count) * width + shift);
  const DeviceArray<std::int32_t> list(numbers);
  need(gather_rows(x.get() + shift, list.get(), y.get() + shift, count, width * sizeof(T), nullptr),
       "gather");
  const std::vector<T> got = y.host();
  bool same = true;
  const std::vector<T> zeros(static_cast<std::size_t>(width));
  for (int i = 0; i < count && same; ++i)
    same = std::memcmp(
               &got[i * static_cast<long>(width) + shift],
               numbers[i] < 0 ? zeros.data() : &host[numbers[i] * static_cast<long>(width) + shift],
               width * sizeof(T)) == 0;
  checker.check("gather " + std::to_string(count) + " x " + std::to_string(width) + ", " +
                    std::to_string(sizeof(T)) + " bytes",
                same);
}

void test_add(Checker& checker, int count, int limit, int width) {
  const auto numbers = some_rows(count, limit);
  const auto x = noise(static_cast<std::size_t>(count) * width, 1);
  const auto before = noise(static_cast<std::size_t>(limit) * width, 2);
  std::vector<double> expected(before.begin(), before.end());
  std::vector<std::int32_t> rows, begin, takers;
  for (int row = 0; row < limit; ++row) {
    const auto first = static_cast<std::int32_t>(takers.size());
    for (int i = 0; i < count; ++i)
      if (numbers[i] == row) takers.push_back(i);
    if (static_cast<std::int32_t>(takers.size()) == first) continue;
    rows.push_back(row);
    begin.push_back(first);
  }
  begin.push_back(static_cast<std::int32_t>(takers.size()));
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < width; ++j)
      expected[numbers[i] * static_cast<long>(width) + j] += x[i * static_cast<long>(width) + j];
  const DeviceArray<float> dx(x), to(before);
  const DeviceArray<std::int32_t> drows(rows), dbegin(begin), dtakers(takers);
  RowSums call;
  call.rows = static_cast<std::int64_t>(rows.size()), call.width = width;
  call.row = drows.get(), call.begin = dbegin.get(), call.takers = dtakers.get();
  call.x = dx.get(), call.to = to.get();
  need(add_rows(call, nullptr), "add");
  checker.close("add " + std::to_string(count) + " x " + std::to_string(width), to.host(), expected,
                2e-6);
}

void tests(Checker& checker) {
  for (const int width : {1, 3, 8, 64, 130, 520}) {
    test_gather<float>(checker, 37, 11, width, 0);
    test_gather<Bf16>(checker, 37, 11, 2 * width, 0);
    test_gather<Bf16>(checker, 5, 11, width, 1);
    test_add(checker, 37, 11, width);
  }
  test_gather<float>(checker, 1, 1, 4, 0);
  test_add(checker, 1, 1, 1);
  test_add(checker, 0, 5, 8);
  const DeviceArray<float> p(8);
  const DeviceArray<std::int32_t> n(8);
  checker.check("an odd row is refused",
                gather_rows(p.get(), n.get(), p.get(), 1, 3, nullptr) == cudaErrorInvalidValue);
  RowSums bad;
  bad.rows = -1;
  checker.check("rows below zero are refused", add_rows(bad, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error",
                add_rows(RowSums{}, nullptr) == 0 &&
                    gather_rows(nullptr, nullptr, nullptr, 0, 4, nullptr) == 0);
  if (!timed()) return;
  constexpr int kRows = 8192, kWidth = 4096;
  const DeviceArray<Bf16> x(as<Bf16>(noise(kRows * static_cast<std::size_t>(kWidth), 1))),
      y(kRows * static_cast<std::size_t>(kWidth));
  const DeviceArray<std::int32_t> list(some_rows(kRows, kRows));
  time_launch("gather bf16", 4. * kRows * kWidth, 0, [&] {
    return gather_rows(x.get(), list.get(), y.get(), kRows, 2 * kWidth, nullptr);
  });
}

}  // namespace

int main() {
  return run(tests);
}
