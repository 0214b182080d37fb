// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernel_test.h"
#include "layer_norm.h"

using vfm::kernels::kLayerNormChunk;
using vfm::kernels::kLayerNormNumbers;
using vfm::kernels::layer_norm;
using vfm::kernels::layer_norm_backward;
using vfm::kernels::LayerNorm;
using vfm::kernels::LayerNormBackward;
using namespace vfm::test;

namespace {

constexpr float kEpsilon = 1e-3f;  // large enough to matter

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

std::size_t product(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

Doubles expected_of(const Numbers& x, const Numbers& weight, const Numbers& bias, float epsilon) {
  const std::size_t width = weight.size();
  const double count = static_cast<double>(width);
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < width; ++i)
      mean += x[row + i] / count;
    for (std::size_t i = 0; i < width; ++i)
      variance += (x[row + i] - mean) * (x[row + i] - mean) / count;
    for (std::size_t i = 0; i < width; ++i)
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + epsilon) * weight[i] + bias[i];
  }
  return y;
}

// All arrays begin `shift` numbers behind a multiple of 256 bytes; what is beside them stays.
Numbers computed(Checker& checker, int tokens, const Numbers& x, const Numbers& weight,
                 const Numbers& bias, float epsilon, bool in_place, std::size_t shift) {
  constexpr std::size_t kMargin = 9;
  const auto padded = [&](const Numbers& values) {
    Numbers all(shift, 77.f);
    all.insert(all.end(), values.begin(), values.end());
    all.resize(all.size() + kMargin, 77.f);
    return all;
  };
  const DeviceArray<float> dev_x(padded(x)), dev_weight(padded(weight)), dev_bias(padded(bias)),
      other(padded(Numbers(x.size(), NAN)));
  const DeviceArray<float>& y = in_place ? dev_x : other;
  LayerNorm c;
  c.tokens = tokens, c.width = static_cast<int>(weight.size()), c.epsilon = epsilon;
  c.x = dev_x.get() + shift, c.weight = dev_weight.get() + shift;
  c.bias = dev_bias.get() + shift, c.y = y.get() + shift;
  need(layer_norm(c, nullptr), "layer norm");
  const Numbers all = y.host();
  bool kept = true;
  for (std::size_t i = 0; i < kMargin; ++i)
    kept = kept && all[all.size() - 1 - i] == 77.f && (i >= shift || all[i] == 77.f);
  checker.check("nothing is written beside y", kept);
  return {all.begin() + static_cast<long>(shift), all.end() - kMargin};
}

void compare(Checker& checker, const std::string& what, int tokens, int width, const Numbers& x,
             float epsilon = kEpsilon, bool in_place = false, std::size_t shift = 0) {
  const auto size = static_cast<std::size_t>(width);
  const Numbers weight = noise(size, 3), bias = noise(size, 4);
  const Numbers got = computed(checker, tokens, x, weight, bias, epsilon, in_place, shift);
  checker.close(what + " " + std::to_string(tokens) + " x " + std::to_string(width), got,
                expected_of(x, weight, bias, epsilon), 1e-6);
}

struct Gradients {
  Doubles x, both;
};

Gradients backward_of(const Doubles& x, const Numbers& weight, const Doubles& dy, double epsilon) {
  const std::size_t width = weight.size();
  const double count = static_cast<double>(width);
  Gradients g{Doubles(x.size()), Doubles(2 * width)};
  for (std::size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0, gradient = 0, product = 0;
    for (std::size_t i = 0; i < width; ++i)
      mean += x[row + i] / count;
    for (std::size_t i = 0; i < width; ++i)
      variance += (x[row + i] - mean) * (x[row + i] - mean) / count;
    const double r = 1 / std::sqrt(variance + epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      const double n = (x[row + i] - mean) * r, d = dy[row + i];
      g.both[i] += d * n;
      g.both[width + i] += d;
      gradient += d * weight[i] / count;
      product += d * weight[i] * n / count;
    }
    for (std::size_t i = 0; i < width; ++i)
      g.x[row + i] = r * (dy[row + i] * weight[i] - gradient - (x[row + i] - mean) * r * product);
  }
  return g;
}

Doubles in_double(const Numbers& v) {
  return {v.begin(), v.end()};
}

void compare_back(Checker& checker, const std::string& what, int tokens, int width,
                  const Numbers& x, const Numbers& dy, bool in_place = false, bool want = true,
                  std::size_t shift = 0) {
  const Numbers weight = noise(static_cast<std::size_t>(width), 3);
  const auto shifted = [&](Numbers values) {
    values.insert(values.begin(), shift, 77.f);
    return values;
  };
  const auto unshifted = [&](Numbers values) {
    values.erase(values.begin(), values.begin() + static_cast<long>(shift));
    return values;
  };
  const std::int64_t chunks = (tokens + kLayerNormChunk - 1) / kLayerNormChunk;
  const DeviceArray<float> dev_x(shifted(x)), dev_weight(shifted(weight)), dev_dy(shifted(dy)),
      other(x.size() + shift), both(2 * weight.size()),
      partial(static_cast<std::size_t>(2 * chunks * width)),
      numbers(static_cast<std::size_t>(tokens * kLayerNormNumbers));
  const DeviceArray<float>& dx = in_place ? dev_dy : other;
  LayerNormBackward c;
  c.tokens = tokens, c.width = width, c.epsilon = kEpsilon;
  c.x = dev_x.get() + shift, c.weight = dev_weight.get() + shift;
  c.dy = dev_dy.get() + shift, c.dx = dx.get() + shift;
  c.numbers = numbers.get();
  if (want) c.dboth = both.get(), c.partial = partial.get();
  need(layer_norm_backward(c, nullptr), "layer norm backward");
  const Gradients expected = backward_of(in_double(x), weight, in_double(dy), double{kEpsilon});
  const std::string name = what + " " + std::to_string(tokens) + " x " + std::to_string(width);
  checker.close(name + " dx", unshifted(dx.host()), expected.x, 3e-6);
  // Not asked for: the NaN of before.
  checker.close(name + " of weight and bias", both.host(),
                want ? expected.both : Doubles(2 * weight.size(), NAN), 3e-6);
}

void test_backward(Checker& checker) {
  for (const int width : {1, 4, 7, 33, 128, 512, 1027, 1152, 4096, 4100})
    for (const int tokens : {1, width < 1024 ? 67 : 5}) {
      const std::size_t size = product(tokens, width);
      compare_back(checker, "back", tokens, width, noise(size, 1), noise(size, 2));
    }
  for (const int tokens : {0, 31, 32, 65})
    for (const int width : {33, 36}) {
      const std::size_t size = product(tokens, width);
      compare_back(checker, "in place", tokens, width, noise(size, 4), noise(size, 5), true);
      compare_back(checker, "dx alone", tokens, width, noise(size, 6), noise(size, 7), false,
                   false);
    }
  compare_back(checker, "shifted", 5, 64, noise(320, 1), noise(320, 2), false, true, 1);
  // A mean far larger than the deviation.
  Numbers far = noise(5ul * 768, 8);
  for (float& v : far)
    v += 1e4f;
  compare_back(checker, "about 10000", 5, 768, far, noise(5ul * 768, 9));
  const float inf = std::numeric_limits<float>::infinity();
  for (const float hard : {inf, std::nanf("")})
    for (const bool of_x : {true, false}) {
      Numbers x = noise(5ul * 36, 1), dy = noise(5ul * 36, 2);
      (of_x ? x : dy)[2ul * 36 + 5] = hard;
      compare_back(checker, "with " + std::to_string(hard), 5, 36, x, dy);
    }
}

// The formula of backward itself, against differences of the forward one.
void test_differences(Checker& checker) {
  const Numbers x = noise(36, 1), weight = noise(12, 2), bias = noise(12, 3), dy = noise(36, 4);
  const Gradients g = backward_of(in_double(x), weight, in_double(dy), double{kEpsilon});
  const auto loss = [&](const Numbers& at_x, const Numbers& at_weight, const Numbers& at_bias) {
    const Doubles y = expected_of(at_x, at_weight, at_bias, kEpsilon);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * dy[i];
    return sum;
  };
  const auto slope = [](Numbers& of, std::size_t i, const auto& at) {
    const float was = of[i];
    const float more = was + 1.f / 512, less = was - 1.f / 512;
    of[i] = more;
    const double above = at();
    of[i] = less;
    const double below = at();
    of[i] = was;
    return (above - below) / (double{more} - double{less});
  };
  Numbers some = x, weights = weight, biases = bias;
  const auto at = [&] { return loss(some, weights, biases); };
  Doubles dx, both;
  for (std::size_t i = 0; i < 36; ++i)
    dx.push_back(slope(some, i, at));
  for (std::size_t i = 0; i < 12; ++i)
    both.push_back(slope(weights, i, at));
  for (std::size_t i = 0; i < 12; ++i)
    both.push_back(slope(biases, i, at));
  checker.close("differences dx", dx, g.x, 1e-4);
  checker.close("differences of weight and bias", both, g.both, 1e-4);
}

void test_sizes(Checker& checker) {
  for (const int width :
       {1, 4, 7, 33, 128, 384, 512, 516, 768, 1024, 1027, 1152, 1664, 2052, 3072, 4096, 4100})
    for (const int tokens : {1, width < 1024 ? 17 : 3}) {
      const Numbers x = noise(product(tokens, width), 1);
      compare(checker, "plain", tokens, width, x);
      compare(checker, "in place", tokens, width, x, kEpsilon, true);
    }
  compare(checker, "no tokens", 0, 36, {});
  for (const std::size_t shift : {1, 2, 4})
    compare(checker, "shifted by " + std::to_string(shift), 5, 768, noise(5ul * 768, 2), kEpsilon,
            false, shift);
}

// Where the mean is far larger than the deviation, and one number far from all.
void test_large_means(Checker& checker) {
  for (const int width : {7, 768, 1027, 3072})
    for (const float mean : {1e4f, -1e4f, 1e6f}) {
      Numbers x = noise(product(4, width), 5);
      for (float& v : x)
        v += mean;
      compare(checker, "about " + std::to_string(mean), 4, width, x, 1e-6f);
      for (int row = 0; row < 4; ++row)
        x[product(row, width)] = -3 * mean;
      compare(checker, "with one far from " + std::to_string(mean), 4, width, x, 1e-6f);
    }
}

void test_equal_numbers(Checker& checker) {
  for (const int width : {3, 384, 1000, 4100})
    for (const float constant : {0.f, 0.1f, -12345.678f, 1e30f, 1e-30f}) {
      const auto size = static_cast<std::size_t>(width);
      const Numbers bias = noise(size, 6);
      checker.check("equal numbers give the bias",
                    computed(checker, 1, Numbers(size, constant), noise(size, 7), bias, 1e-12f,
                             false, 0) == bias);
    }
}

void test_hard_numbers(Checker& checker) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const int width : {35, 36}) {
    const int tokens = 5;
    for (const float hard : {inf, -inf, std::nanf(""), 1e-30f})
      for (const int column : {0, 5, width - 1}) {
        Numbers x = noise(product(tokens, width), 8);
        x[product(2, width) + static_cast<std::size_t>(column)] = hard;
        compare(checker, "with " + std::to_string(hard), tokens, width, x);
      }
  }
}

void test_refusals(Checker& checker) {
  const DeviceArray<float> a(64);
  LayerNorm c;
  c.tokens = 1, c.width = -1;
  c.x = c.weight = c.bias = a.get(), c.y = a.get();
  checker.check("a width below zero is refused", layer_norm(c, nullptr) == cudaErrorInvalidValue);
  c.width = 8, c.tokens = -1;
  checker.check("tokens below zero are refused", layer_norm(c, nullptr) == cudaErrorInvalidValue);
  c.tokens = 1l << 31;
  checker.check("too many tokens are refused", layer_norm(c, nullptr) == cudaErrorInvalidValue);
  c.tokens = 1, c.width = 0;
  checker.check("nothing is no error", layer_norm(c, nullptr) == 0 && layer_norm({}, nullptr) == 0);
  LayerNormBackward b;
  checker.check("nothing back is no error", layer_norm_backward(b, nullptr) == 0);
  b.tokens = 1, b.width = 8, b.dboth = a.get();
  checker.check("sums need room", layer_norm_backward(b, nullptr) == cudaErrorInvalidValue);
  b.dboth = nullptr, b.tokens = 1l << 31;
  checker.check("too many tokens back", layer_norm_backward(b, nullptr) == cudaErrorInvalidValue);
}

void time_rows(int tokens, int width) {
  const std::size_t size = product(tokens, width);
  const auto row = static_cast<std::size_t>(width);
  const DeviceArray<float> x(noise(size, 1)), y(size), weight(noise(row, 3)), bias(noise(row, 4));
  LayerNorm c;
  c.tokens = tokens, c.width = width;
  c.x = x.get(), c.weight = weight.get(), c.bias = bias.get(), c.y = y.get();
  time_launch("layer norm f32 of " + std::to_string(width), 8. * static_cast<double>(size), 0,
              [&] { return layer_norm(c, nullptr); });
  const DeviceArray<float> both(2 * row), numbers(product(tokens, kLayerNormNumbers)),
      partial(2 * row * static_cast<std::size_t>(tokens / kLayerNormChunk + 1));
  LayerNormBackward b;
  b.tokens = tokens, b.width = width;
  b.x = x.get(), b.weight = weight.get(), b.dy = b.dx = y.get();
  b.dboth = both.get(), b.numbers = numbers.get(), b.partial = partial.get();
  time_launch("layer norm backward f32 of " + std::to_string(width),
              20. * static_cast<double>(size), 0, [&] { return layer_norm_backward(b, nullptr); });
}

void tests(Checker& checker) {
  test_sizes(checker);
  test_large_means(checker);
  test_equal_numbers(checker);
  test_hard_numbers(checker);
  test_backward(checker);
  test_differences(checker);
  test_refusals(checker);
  if (!timed()) return;
  for (const int width : {384, 768, 1024, 1152})
    time_rows(32768, width);
}

}  // namespace

int main() {
  return run(tests);
}
