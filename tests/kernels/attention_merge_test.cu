// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "attention_merge.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Two parts, of which the second has no keys for rows 3 and 4, and neither has any for the last.
void compare(Checker& checker, int rows, int heads, int head_dim) {
  const auto size = static_cast<std::size_t>(rows) * heads * head_dim;
  const std::vector<float> first = noise(size, 1), second = noise(size, 2);
  auto sums1 = noise(static_cast<std::size_t>(rows) * heads, 3),
       sums2 = noise(static_cast<std::size_t>(rows) * heads, 4);
  for (std::size_t i = 0; i < sums1.size(); ++i)
    sums1[i] *= 20, sums2[i] *= 20;
  const DeviceArray<float> out1(first), out2(second), lse1(sums1), lse2(sums2), out(size),
      lse(sums1.size());
  AttentionMerge call;
  call.heads = heads, call.head_dim = head_dim;
  call.queries = rows;
  call.out_sum = out.get(), call.log_sum_exp_sum = lse.get();
  const auto add = [&](const DeviceArray<float>* part, const DeviceArray<float>& sums, int begin,
                       int end) {
    call.out = part == nullptr ? nullptr : part->get();
    call.log_sum_exp = sums.get();
    call.first = begin, call.end = end;
    need(attention_merge(call, nullptr), "merge");
  };
  call.begins = true;
  add(&out1, lse1, 0, rows - 1);
  add(nullptr, lse1, rows - 1, rows);
  call.begins = false;
  add(&out2, lse2, 0, 3);
  add(&out2, lse2, 5, rows - 1);
  std::vector<double> expected(size), logarithms(sums1.size());
  for (int row = 0; row < rows; ++row)
    for (int head = 0; head < heads; ++head) {
      const std::size_t at = static_cast<std::size_t>(head) * rows + row;
      const bool both = row != 3 && row != 4, none = row == rows - 1;
      const double top = both ? std::max(sums1[at], sums2[at]) : sums1[at];
      const double a = std::exp(sums1[at] - top), b = both ? std::exp(sums2[at] - top) : 0;
      logarithms[at] = none ? -kInfinity : top + std::log(a + b);
      for (int d = 0; d < head_dim; ++d) {
        const std::size_t i = (static_cast<std::size_t>(row) * heads + head) * head_dim + d;
        expected[i] = none ? 0 : (a * first[i] + b * second[i]) / (a + b);
      }
    }
  const std::string name =
      std::to_string(rows) + " x " + std::to_string(heads) + " x " + std::to_string(head_dim);
  checker.close(name, out.host(), expected, 2e-6);
  const std::vector<float> found = lse.host();
  bool same = true;
  for (std::size_t i = 0; i < found.size(); ++i)
    same = same && (std::isinf(logarithms[i]) ? found[i] == -kInfinity
                                              : std::abs(found[i] - logarithms[i]) < 1e-5);
  checker.check(name + ", logarithms", same);
}

// Keys after none, and a NaN.
void test_hard_numbers(Checker& checker) {
  const DeviceArray<float> part(std::vector<float>{1, 2, 3, 4}),
      lse(std::vector<float>{5, std::nanf("")}), out(4), sum(2);
  AttentionMerge call;
  call.heads = 2, call.head_dim = 2;
  call.queries = call.end = 1;
  call.begins = true;
  call.out_sum = out.get(), call.log_sum_exp_sum = sum.get();
  need(attention_merge(call, nullptr), "no keys");
  call.begins = false;
  call.out = part.get(), call.log_sum_exp = lse.get();
  need(attention_merge(call, nullptr), "keys");
  const std::vector<float> made = out.host(), sums = sum.host();
  checker.check("keys after none", made[0] == 1 && made[1] == 2 && sums[0] == 5);
  checker.check("a NaN stays", std::isnan(made[2]) && std::isnan(made[3]) && std::isnan(sums[1]));
  call.end = 2;
  checker.check("rows beyond the queries are refused",
                attention_merge(call, nullptr) == cudaErrorInvalidValue);
  call.end = 0;
  checker.check("nothing is no error", attention_merge(call, nullptr) == 0);
}

void test_turn(Checker& checker, int rows, int columns) {
  const auto size = static_cast<std::size_t>(rows) * columns;
  const std::vector<float> values = noise(size, 5);
  const DeviceArray<float> from(values), to(size);
  need(attention_turn(from.get(), to.get(), rows, columns, nullptr), "turn");
  const std::vector<float> found = to.host();
  bool same = true;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      same = same && found[static_cast<std::size_t>(column) * rows + row] ==
                         values[static_cast<std::size_t>(row) * columns + column];
  checker.check("turned, " + std::to_string(rows) + " x " + std::to_string(columns), same);
}

void tests(Checker& checker) {
  test_turn(checker, 100, 6);
  test_turn(checker, 24, 131);
  test_turn(checker, 1, 1);
  checker.check("nothing to turn is no error",
                attention_turn(nullptr, nullptr, 0, 5, nullptr) == 0);
  checker.check("sizes below zero are refused",
                attention_turn(nullptr, nullptr, -1, 5, nullptr) == cudaErrorInvalidValue);
  for (const int head_dim : {1, 6, 64, 128, 200})
    compare(checker, 9, 3, head_dim);
  if (!small()) compare(checker, 20000, 16, 128);
  test_hard_numbers(checker);
}

}  // namespace

int main() {
  return run(tests);
}
