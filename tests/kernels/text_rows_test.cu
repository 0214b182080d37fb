// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernel_test.h"
#include "text_rows.h"

using vfm::kernels::add_bias;
using vfm::kernels::turn_heads;
using vfm::kernels::turn_neighbours;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Rounded one by one, whatever the compiler could fuse.
float times(float a, float b) {
  volatile float product = a * b;
  return product;
}

void test_turn(Checker& checker, int rows, int heads, int half, int beside) {
  const int width = heads * 2 * half + beside;
  auto expected = noise(static_cast<std::size_t>(rows) * width, 1);
  const auto c = noise(static_cast<std::size_t>(rows) * half, 2),
             s = noise(static_cast<std::size_t>(rows) * half, 3);
  const DeviceArray<float> x(expected), cosines(c), sines(s);
  need(turn_heads(x.get(), rows, width, heads, half, cosines.get(), sines.get(), nullptr), "turn");
  for (int row = 0; row < rows; ++row)
    for (int head = 0; head < heads; ++head)
      for (int i = 0; i < half; ++i) {
        float* const at = &expected[static_cast<std::size_t>(row) * width + head * 2 * half + i];
        const std::size_t angle = static_cast<std::size_t>(row) * half + i;
        const float a = at[0], b = at[half];
        at[0] = times(a, c[angle]) - times(b, s[angle]);
        at[half] = times(b, c[angle]) + times(a, s[angle]);
      }
  checker.check("turn " + std::to_string(rows) + " x " + std::to_string(heads) + " heads of " +
                    std::to_string(2 * half),
                same_bits(x.host(), expected));
}

void test_neighbours(Checker& checker, int rows, int heads, int half, int beside) {
  const int width = heads * 2 * half + beside;
  auto expected = noise(static_cast<std::size_t>(rows) * width, 1);
  const auto c = noise(static_cast<std::size_t>(rows) * 2 * half, 2),
             s = noise(static_cast<std::size_t>(rows) * 2 * half, 3);
  const DeviceArray<float> x(expected), cosines(c), sines(s);
  need(turn_neighbours(x.get(), rows, width, heads, half, cosines.get(), sines.get(), nullptr),
       "turn neighbours");
  for (int row = 0; row < rows; ++row)
    for (int head = 0; head < heads; ++head)
      for (int i = 0; i < 2 * half; i += 2) {
        float* const at = &expected[static_cast<std::size_t>(row) * width + head * 2 * half + i];
        const std::size_t angle = static_cast<std::size_t>(row) * 2 * half + i;
        const float a = at[0], b = at[1];
        at[0] = times(a, c[angle]) - times(b, s[angle]);
        at[1] = times(b, c[angle + 1]) + times(a, s[angle + 1]);
      }
  checker.check("turn the neighbours of " + std::to_string(rows) + " x " + std::to_string(heads) +
                    " heads of " + std::to_string(2 * half),
                same_bits(x.host(), expected));
}

template <class T>
void test_bias(Checker& checker, int rows, int width, int first, int stride) {
  const auto before = as<T>(noise(static_cast<std::size_t>(rows) * stride, 1));
  const auto bias = noise(static_cast<std::size_t>(width), 2);
  const DeviceArray<T> y(before);
  const DeviceArray<float> b(bias);
  const bool low = sizeof(T) == 2;
  need(add_bias(low ? Type::bf16 : Type::f32, y.get() + first, rows, stride, b.get(), width,
                nullptr),
       "add a bias");
  std::vector<float> sums, made;
  for (const T& v : before)
    sums.push_back(value(v));
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < width; ++i)
      sums[static_cast<std::size_t>(row) * stride + first + i] += bias[static_cast<std::size_t>(i)];
  std::vector<float> expected;
  for (const T& v : as<T>(sums))
    expected.push_back(value(v));
  for (const T& v : y.host())
    made.push_back(value(v));
  checker.check((low ? "bf16 bias " : "bias ") + std::to_string(rows) + " x " +
                    std::to_string(width),
                same_bits(made, expected));
}

void tests(Checker& checker) {
  test_turn(checker, 5, 3, 4, 7);
  test_turn(checker, 3, 2, 40, 0);
  test_turn(checker, 2, 12, 64, 256);
  test_turn(checker, 1, 1, 1, 0);
  test_neighbours(checker, 5, 3, 4, 6);
  test_neighbours(checker, 3, 2, 40, 0);
  test_neighbours(checker, 2, 32, 32, 1024);
  test_bias<float>(checker, 3, 5, 2, 9);
  test_bias<float>(checker, 4, 600, 0, 600);
  test_bias<float>(checker, 2, 600, 8, 616);
  test_bias<float>(checker, 1, 1, 0, 1);
  test_bias<__nv_bfloat16>(checker, 3, 5, 2, 9);
  test_bias<__nv_bfloat16>(checker, 2, 601, 0, 601);
  test_bias<__nv_bfloat16>(checker, 2, 4104, 8, 4112);
  const DeviceArray<float> p(8);
  checker.check(
      "heads that do not fit are refused",
      turn_heads(p.get(), 1, 7, 2, 2, p.get(), p.get(), nullptr) == cudaErrorInvalidValue &&
          turn_neighbours(p.get(), 1, 7, 1, 2, p.get(), p.get(), nullptr) == cudaErrorInvalidValue);
  checker.check("a bias that does not fit is refused",
                add_bias(Type::f32, p.get(), 1, 3, p.get(), 4, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error",
                turn_heads(nullptr, 0, 4, 1, 2, nullptr, nullptr, nullptr) == 0 &&
                    turn_neighbours(nullptr, 0, 4, 1, 2, nullptr, nullptr, nullptr) == 0 &&
                    add_bias(Type::f32, nullptr, 0, 4, nullptr, 4, nullptr) == 0);
}

}  // namespace

int main() {
  return run(tests);
}
