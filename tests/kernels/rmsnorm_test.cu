// SPDX-License-Identifier: Apache-2.0
#include <cfloat>
#include <limits>

#include "kernel_test.h"
#include "rmsnorm.h"

using vfm::kernels::kRmsnormChunk;
using vfm::kernels::RmsnormBackward;
using vfm::kernels::RmsnormForward;
using namespace vfm::test;

namespace {

constexpr float kEpsilon = 1e-3f;  // large enough to matter

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

std::size_t product(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

double inverse_rms(const double* x, int width) {
  double mean = 0;
  for (int i = 0; i < width; ++i)
    mean += x[i] * x[i] / width;
  if (mean > FLT_MAX) mean = std::numeric_limits<double>::infinity();  // as in f32
  return 1 / std::sqrt(mean + kEpsilon);
}

Doubles forward(const Doubles& x, const Doubles& weight) {
  const int width = static_cast<int>(weight.size());
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size(); row += weight.size()) {
    const double r = inverse_rms(&x[row], width);
    for (int i = 0; i < width; ++i)
      y[row + i] = x[row + i] * r * weight[i];
  }
  return y;
}

struct Gradients {
  Doubles x, weight;
};

Gradients backward(const Doubles& x, const Doubles& weight, const Doubles& dy) {
  const int width = static_cast<int>(weight.size());
  Gradients result{Doubles(x.size()), Doubles(weight.size())};
  for (std::size_t row = 0; row < x.size(); row += weight.size()) {
    const double r = inverse_rms(&x[row], width);
    double mean = 0;
    for (int i = 0; i < width; ++i) {
      const double n = x[row + i] * r;
      result.weight[i] += dy[row + i] * n;
      mean += dy[row + i] * weight[i] * n / width;
    }
    for (int i = 0; i < width; ++i)
      result.x[row + i] = r * (dy[row + i] * weight[i] - x[row + i] * r * mean);
  }
  return result;
}

Doubles doubles(const Numbers& values) {
  return {values.begin(), values.end()};
}

struct Outputs {
  Numbers y, dx, dweight;
};

Outputs compute(int tokens, int width, const Numbers& x, const Numbers& weight, const Numbers& dy,
                bool in_place, bool want_weight) {
  const std::size_t size = product(tokens, width);
  const std::int64_t chunks = (tokens + kRmsnormChunk - 1) / kRmsnormChunk;
  const DeviceArray<float> dev_x(x), dev_weight(weight), dev_dy(dy), y(size), other(size),
      dweight(weight.size()), partial(product(static_cast<int>(chunks), width));
  const DeviceArray<float>& dx = in_place ? dev_dy : other;
  RmsnormForward f;
  f.tokens = tokens, f.width = width, f.epsilon = kEpsilon;
  f.x = dev_x.get(), f.weight = dev_weight.get(), f.y = y.get();
  need(rmsnorm_forward(f, nullptr), "forward");
  RmsnormBackward b;
  b.tokens = tokens, b.width = width, b.epsilon = kEpsilon;
  b.x = dev_x.get(), b.weight = dev_weight.get(), b.dy = dev_dy.get(), b.dx = dx.get();
  if (want_weight) b.dweight = dweight.get(), b.partial = partial.get();
  need(rmsnorm_backward(b, nullptr), "backward");
  return {y.host(), dx.host(), dweight.host()};
}

void compare(Checker& checker, const std::string& what, int tokens, int width, const Numbers& x,
             const Numbers& dy, bool in_place = false, bool want_weight = true) {
  const Numbers weight = noise(static_cast<std::size_t>(width), 3);
  const Outputs got = compute(tokens, width, x, weight, dy, in_place, want_weight);
  const Gradients expected = backward(doubles(x), doubles(weight), doubles(dy));
  const std::string name = what + " " + std::to_string(tokens) + " x " + std::to_string(width);
  checker.close(name + " y", got.y, forward(doubles(x), doubles(weight)), 2e-6);
  checker.close(name + " dx", got.dx, expected.x, 2e-6);
  // Not asked for: the NaN of before.
  checker.close(name + " dweight", got.dweight,
                want_weight ? expected.weight : Doubles(weight.size(), NAN), 2e-6);
}

void test_sizes(Checker& checker) {
  for (const int width : {1, 4, 7, 192, 1024, 1027, 1028, 2048, 4096, 5120, 6144, 6148})
    for (const int tokens : {1, width < 2048 ? 17 : 3}) {
      const std::size_t size = product(tokens, width);
      compare(checker, "plain", tokens, width, noise(size, 1), noise(size, 2));
    }
  for (const int tokens : {0, 15, 16, 33})
    for (const int width : {33, 36}) {
      const std::size_t size = product(tokens, width);
      compare(checker, "in place", tokens, width, noise(size, 4), noise(size, 5), true);
      compare(checker, "no dweight", tokens, width, noise(size, 6), noise(size, 7), false, false);
    }
  compare(checker, "many chunks", 135, 36, noise(135ul * 36, 8), noise(135ul * 36, 9));
}

// Each kind of hard numbers in its own pack: one NaN makes all of dweight NaN.
void test_hard_numbers(Checker& checker) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const int width : {36, 35}) {
    const int tokens = 6;
    const std::size_t size = product(tokens, width);
    for (const float hard : {inf, -inf, std::nanf(""), 1e30f, -1e30f, 1e-30f, 0.f}) {
      const std::string name = std::to_string(hard);
      Numbers x = noise(size, 1), dy = noise(size, 2);
      x[product(4, width) + 5] = hard;
      compare(checker, "x with " + name, tokens, width, x, dy);
      std::fill_n(x.begin() + 2l * width, width, hard);
      compare(checker, "x with a row of " + name, tokens, width, x, dy);
      x = noise(size, 1);
      if (std::abs(hard) < 1) continue;
      dy[product(3, width) + 7] = hard;
      compare(checker, "dy with " + name, tokens, width, x, dy);
    }
    // Squares overflow, and so would g x.
    Numbers x = noise(size, 1), dy = noise(size, 2);
    std::fill_n(x.begin(), width, 1e25f);
    std::fill_n(dy.begin(), width, 1e20f);
    compare(checker, "overflowing", tokens, width, x, dy);
  }
}

void test_differences(Checker& checker) {
  const int tokens = 3, width = 20;
  const Numbers x = noise(60, 1), weight = noise(20, 2), dy = noise(60, 3);
  const Outputs got = compute(tokens, width, x, weight, dy, false, true);
  const auto loss = [&](const Doubles& at_x, const Doubles& at_weight) {
    const Doubles y = forward(at_x, at_weight);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * dy[i];
    return sum;
  };
  constexpr double h = 1e-5;
  Doubles dx, dweight;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Doubles more = doubles(x), less = more;
    more[i] += h, less[i] -= h;
    dx.push_back((loss(more, doubles(weight)) - loss(less, doubles(weight))) / (2 * h));
  }
  for (std::size_t i = 0; i < weight.size(); ++i) {
    Doubles more = doubles(weight), less = more;
    more[i] += h, less[i] -= h;
    dweight.push_back((loss(doubles(x), more) - loss(doubles(x), less)) / (2 * h));
  }
  checker.close("dx by differences", got.dx, dx, 1e-6);
  checker.close("dweight by differences", got.dweight, dweight, 1e-6);
}

void test_refusals(Checker& checker) {
  const DeviceArray<float> a(64);
  RmsnormForward f;
  f.tokens = 1, f.width = 8;
  f.x = f.weight = a.get() + 1, f.y = a.get();
  checker.check("unaligned x is refused", rmsnorm_forward(f, nullptr) == cudaErrorInvalidValue);
  f.x = f.weight = a.get(), f.width = -1;
  checker.check("a width below zero is refused",
                rmsnorm_forward(f, nullptr) == cudaErrorInvalidValue);
  f.width = 8, f.tokens = 1l << 31;
  checker.check("too many tokens are refused",
                rmsnorm_forward(f, nullptr) == cudaErrorInvalidValue);
  RmsnormBackward b;
  b.tokens = 1, b.width = 8;
  b.x = b.weight = b.dy = a.get(), b.dx = b.dweight = a.get();
  checker.check("dweight needs room for sums",
                rmsnorm_backward(b, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error", rmsnorm_forward(RmsnormForward{}, nullptr) == 0 &&
                                           rmsnorm_backward(RmsnormBackward{}, nullptr) == 0);
}

void time_f32(int tokens, int width) {
  const std::size_t size = product(tokens, width);
  const auto rows = static_cast<int>((tokens + kRmsnormChunk - 1) / kRmsnormChunk);
  const DeviceArray<float> x(noise(size, 1)), dy(noise(size, 2)), y(size),
      weight(noise(static_cast<std::size_t>(width), 3)), dweight(static_cast<std::size_t>(width)),
      partial(product(rows, width));
  RmsnormForward f;
  f.tokens = tokens, f.width = width;
  f.x = x.get(), f.weight = weight.get(), f.y = y.get();
  time_launch("rmsnorm f32", 8. * static_cast<double>(size), 0,
              [&] { return rmsnorm_forward(f, nullptr); });
  RmsnormBackward b;
  b.tokens = tokens, b.width = width;
  b.x = x.get(), b.weight = weight.get(), b.dy = dy.get(), b.dx = y.get();
  b.dweight = dweight.get(), b.partial = partial.get();
  time_launch("rmsnorm backward f32", 12. * static_cast<double>(size), 0,
              [&] { return rmsnorm_backward(b, nullptr); });
}

void tests(Checker& checker) {
  test_sizes(checker);
  test_hard_numbers(checker);
  test_differences(checker);
  test_refusals(checker);
  if (timed()) time_f32(8192, 4096);
}

}  // namespace

int main() {
  return run(tests);
}
