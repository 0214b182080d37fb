// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "heads_norm.h"
#include "kernel_test.h"

using vfm::kernels::HeadsNorm;
using vfm::kernels::HeadsNormBackward;
using vfm::kernels::HeadsNormForward;
using vfm::kernels::kHeadsNormChunk;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

constexpr float kEpsilon = 1e-3f;  // large enough to matter
constexpr float kBeside = 77;      // exact in bf16

using Numbers = std::vector<float>;
using Doubles = std::vector<double>;

// A part of `width` columns from column `first` of rows of `stride`; of `ranks` such parts in all.
struct Case {
  int tokens, width, first = 0, stride = 0, ranks = 1;
  bool in_place = false, want_weight = true;
  std::size_t at(int token, int column) const {
    return static_cast<std::size_t>(token) * static_cast<std::size_t>(stride) +
           static_cast<std::size_t>(first + column);
  }
  std::size_t size() const {
    return static_cast<std::size_t>(tokens) * static_cast<std::size_t>(stride);
  }
  int all() const { return width * ranks; }
};

template <class T>
Doubles doubles(const Numbers& v) {
  Doubles result;
  for (const T& e : as<T>(v))
    result.push_back(value(e));
  return result;
}

struct Expected {
  Doubles own, y, products, dx, weight;  // own: sums of squares of this rank
};

// `others` and `other_products` are what the other ranks' columns add to a token's sums.
Expected expected_of(const Case& k, const Doubles& x, const Numbers& weight, const Doubles& dy,
                     const Numbers& others, const Numbers& other_products) {
  Expected e{
      {}, Doubles(k.size(), kBeside), {}, Doubles(k.size(), kBeside), Doubles(weight.size())};
  for (int t = 0; t < k.tokens; ++t) {
    double squares = 0, product = 0;
    for (int i = 0; i < k.width; ++i)
      squares += x[k.at(t, i)] * x[k.at(t, i)];
    // The kernel's sum is f32: what overflows there must here.
    squares = double{static_cast<float>(squares)};
    e.own.push_back(squares);
    const double r = 1 / std::sqrt((squares + double{others[t]}) / k.all() + double{kEpsilon});
    for (int i = 0; i < k.width; ++i) {
      const double n = x[k.at(t, i)] * r, d = dy[k.at(t, i)];
      e.y[k.at(t, i)] = n * weight[i];
      product += d * weight[i] * n;
      e.weight[i] += d * n;
    }
    e.products.push_back(product);
    product += other_products[t];
    for (int i = 0; i < k.width; ++i)
      e.dx[k.at(t, i)] = r * (dy[k.at(t, i)] * weight[i] - x[k.at(t, i)] * r * product / k.all());
  }
  return e;
}

// A column of a matrix [tokens, 2], beside which nothing may be written.
struct Column {
  explicit Column(int tokens) : Column(Numbers(static_cast<std::size_t>(tokens), NAN)) {}
  explicit Column(const Numbers& values) : array(beside(values)) {}
  static Numbers beside(const Numbers& values) {
    Numbers all(2 * values.size(), kBeside);
    for (std::size_t i = 0; i < values.size(); ++i)
      all[2 * i + 1] = values[i];
    return all;
  }
  float* get() const { return array.get() + 1; }
  Numbers host(Checker& checker) const {
    Numbers values;
    bool kept = true;
    const Numbers all = array.host();
    for (std::size_t i = 0; i < all.size(); i += 2)
      kept = kept && all[i] == kBeside, values.push_back(all[i + 1]);
    checker.check("nothing is written beside a sum", kept);
    return values;
  }
  DeviceArray<float> array;
};

// What this rank and the others have.
Numbers with(Numbers own, const Numbers& others) {
  for (std::size_t i = 0; i < own.size(); ++i)
    own[i] += others[i];
  return own;
}

template <class T>
void compare(Checker& checker, Case k, const Numbers& x, const Numbers& dy) {
  constexpr bool kLow = sizeof(T) == 2;
  const double near = kLow ? 4e-3 : 3e-6;
  const Numbers weight = noise(static_cast<std::size_t>(k.width), 3);
  Numbers others(static_cast<std::size_t>(k.tokens)), other_products = others;
  for (int t = 0; t < k.tokens && k.ranks > 1; ++t)
    others[t] = static_cast<float>(k.width) * (0.5f + 0.01f * static_cast<float>(t)),
    other_products[t] = static_cast<float>(t % 7 - 3);
  const Expected expected =
      expected_of(k, doubles<T>(x), weight, doubles<T>(dy), others, other_products);
  const std::string name = std::string(kLow ? "bf16 " : "f32 ") + std::to_string(k.tokens) + " x " +
                           std::to_string(k.width) + " at " + std::to_string(k.first) + " of " +
                           std::to_string(k.stride) + (k.in_place ? " in place" : "");
  const auto input = [&](const Numbers& v) { return as<T>(v); };
  const DeviceArray<T> dev_x(input(x)), dev_dy(input(dy));
  const DeviceArray<float> dev_weight(weight), dweight(weight.size());
  const auto describe = [&](HeadsNorm& c) {
    c.tokens = k.tokens, c.width = k.width, c.stride = k.stride, c.all = k.all();
    c.step = 2;
    c.type = kLow ? Type::bf16 : Type::f32;
    c.epsilon = kEpsilon;
    c.x = dev_x.get() + k.first;
    c.weight = dev_weight.get();
  };
  HeadsNormForward f;
  describe(f);
  const Column own(k.tokens);
  const DeviceArray<T> y(input(Numbers(k.size(), kBeside)));
  f.sums = own.get();
  if (k.ranks == 1) f.y = y.get() + k.first;
  need(heads_norm_forward(f, nullptr), "forward");
  checker.close(name + " sums", own.host(checker), expected.own, 2e-6);
  const Column sums(with(own.host(checker), others));
  f.sums = sums.get(), f.summed = true, f.y = y.get() + k.first;
  if (k.ranks > 1) need(heads_norm_forward(f, nullptr), "forward");
  checker.close(name + " y", y.host(), expected.y, near);

  HeadsNormBackward b;
  describe(b);
  const Column of_own(k.tokens);
  const std::int64_t chunks = (k.tokens + kHeadsNormChunk - 1) / kHeadsNormChunk;
  const DeviceArray<float> partial(static_cast<std::size_t>(chunks * k.width));
  const DeviceArray<T> other(input(Numbers(k.size(), kBeside)));
  b.sums = sums.get(), b.products = of_own.get(), b.dy = dev_dy.get() + k.first;
  need(heads_norm_products(b, nullptr), "products");
  checker.close(name + " products", of_own.host(checker), expected.products, 3e-6);
  const Column products(with(of_own.host(checker), other_products));
  b.products = products.get();
  b.dx = (k.in_place ? dev_dy : other).get() + k.first;
  if (k.want_weight) b.dweight = dweight.get(), b.partial = partial.get();
  need(heads_norm_gradients(b, nullptr), "gradients");
  Doubles dx = expected.dx;
  if (k.in_place)
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (const int column = static_cast<int>(i % static_cast<std::size_t>(k.stride));
          column < k.first || column >= k.first + k.width)
        dx[i] = doubles<T>({dy[i]})[0];
  checker.close(name + " dx", (k.in_place ? dev_dy : other).host(), dx, near);
  checker.close(name + " dweight", dweight.host(),
                k.want_weight ? expected.weight : Doubles(weight.size(), NAN), 3e-6);
}

void compare_both(Checker& checker, Case k) {
  if (k.stride == 0) k.stride = k.first + k.width;
  const Numbers x = noise(k.size(), 1), dy = noise(k.size(), 2);
  compare<float>(checker, k, x, dy);
  compare<__nv_bfloat16>(checker, k, x, dy);
}

void test_sizes(Checker& checker) {
  for (const int width : {1, 7, 8, 33, 256, 1024, 1028, 2056, 5120})
    for (const int tokens : {1, width < 1024 ? 67 : 5})
      for (const int ranks : {1, 2})
        compare_both(checker, {tokens, width, 0, 0, ranks});
  // Queries, keys and values beside each other.
  for (const int width : {24, 40, 31})
    for (const bool in_place : {false, true})
      for (const int part : {0, 1})
        compare_both(checker, {35, width, part * width, 3 * width, 4, in_place, !in_place});
  compare_both(checker, {5, 64, 1, 66});  // not aligned
  compare_both(checker, {0, 64});
}

// NaN and infinity make their row NaN; a square that overflows makes it zero.
void test_hard_numbers(Checker& checker) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const int width : {40, 35})
    for (const float hard : {inf, -inf, std::nanf(""), 1e30f, 1e-30f, 0.f}) {
      const Case k{6, width, 0, width};
      Numbers x = noise(k.size(), 1), dy = noise(k.size(), 2);
      x[k.at(4, 5)] = hard;
      std::fill_n(x.begin() + 2l * width, width, hard);
      compare<float>(checker, k, x, dy);
      x = noise(k.size(), 1);
      if (std::abs(hard) < 1) continue;
      dy[k.at(3, 7)] = hard;
      compare<float>(checker, k, x, dy);
    }
}

// The formula of backward itself, against differences of the double forward.
void test_differences(Checker& checker) {
  const Case k{3, 10, 0, 10};
  const Doubles x = doubles<float>(noise(k.size(), 1)), dy = doubles<float>(noise(k.size(), 2));
  const Numbers weight = noise(10, 3), none(3);
  const Expected e = expected_of(k, x, weight, dy, none, none);
  const auto loss = [&](const Doubles& at_x, const Numbers& at_weight) {
    const Doubles y = expected_of(k, at_x, at_weight, dy, none, none).y;
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * dy[i];
    return sum;
  };
  const double step = 1.0 / 256;
  Doubles dx, dweight;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Doubles more = x, less = x;
    more[i] += step, less[i] -= step;
    dx.push_back((loss(more, weight) - loss(less, weight)) / (2 * step));
  }
  for (std::size_t i = 0; i < weight.size(); ++i) {
    Numbers more = weight, less = weight;
    more[i] += static_cast<float>(step), less[i] -= static_cast<float>(step);
    dweight.push_back((loss(x, more) - loss(x, less)) / (double{more[i]} - double{less[i]}));
  }
  checker.close("differences dx", dx, e.dx, 1e-4);
  checker.close("differences dweight", dweight, e.weight, 1e-4);
}

void test_refusals(Checker& checker) {
  const DeviceArray<float> a(64);
  HeadsNormForward f;
  f.tokens = 1, f.width = f.all = 8, f.stride = 7;
  f.x = f.weight = a.get(), f.sums = a.get(), f.y = a.get();
  const auto refused = [&] { return heads_norm_forward(f, nullptr) == cudaErrorInvalidValue; };
  checker.check("rows narrower than the part", refused());
  f.stride = 8, f.all = 7;
  checker.check("fewer columns than this rank's", refused());
  f.all = 8, f.width = -1;
  checker.check("a width below zero", refused());
  f.width = 8, f.tokens = 1l << 31;
  checker.check("too many tokens", refused());
  HeadsNormBackward b;
  b.tokens = 1, b.width = b.stride = b.all = 8;
  b.dweight = a.get();
  checker.check("dweight needs room for sums",
                heads_norm_gradients(b, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error", heads_norm_forward(HeadsNormForward{}, nullptr) == 0 &&
                                           heads_norm_products(HeadsNormBackward{}, nullptr) == 0 &&
                                           heads_norm_gradients(HeadsNormBackward{}, nullptr) == 0);
}

void time_bf16(int tokens, int width) {
  const Case k{tokens, width, 0, width};
  const DeviceArray<__nv_bfloat16> x(as<__nv_bfloat16>(noise(k.size(), 1))), y(k.size());
  const auto columns = static_cast<std::size_t>(width);
  const DeviceArray<float> weight(noise(columns, 3)), sums(static_cast<std::size_t>(tokens)),
      products(static_cast<std::size_t>(tokens)), dweight(columns),
      partial(columns * static_cast<std::size_t>(tokens / kHeadsNormChunk + 1));
  const auto describe = [&](HeadsNorm& c) {
    c.tokens = tokens, c.width = c.stride = c.all = width;
    c.type = Type::bf16;
    c.x = x.get(), c.weight = weight.get();
  };
  const double bytes = 2. * static_cast<double>(k.size());
  HeadsNormForward f;
  describe(f);
  f.sums = sums.get(), f.y = y.get();
  time_launch("heads_norm bf16", 2 * bytes, 0, [&] { return heads_norm_forward(f, nullptr); });
  HeadsNormBackward b;
  describe(b);
  b.sums = sums.get(), b.dy = b.dx = y.get(), b.products = products.get();
  b.dweight = dweight.get(), b.partial = partial.get();
  time_launch("heads_norm products bf16", 2 * bytes, 0,
              [&] { return heads_norm_products(b, nullptr); });
  time_launch("heads_norm gradients bf16", 3 * bytes, 0,
              [&] { return heads_norm_gradients(b, nullptr); });
}

void tests(Checker& checker) {
  test_sizes(checker);
  test_hard_numbers(checker);
  test_differences(checker);
  test_refusals(checker);
  if (timed()) time_bf16(8192, 5120);
}

}  // namespace

int main() {
  return run(tests);
}
