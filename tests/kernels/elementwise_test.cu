// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <limits>

#include "elementwise.h"
#include "kernel_test.h"

using vfm::kernels::add_columns;
using vfm::kernels::add_columns_backward;
using vfm::kernels::add_into;
using vfm::kernels::convert;
using vfm::kernels::activation_backward;
using vfm::kernels::activation_forward;
using vfm::kernels::ActivationKind;
using vfm::kernels::scaled_sum;
using vfm::kernels::silu_backward;
using vfm::kernels::silu_forward;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

using Bf16 = __nv_bfloat16;

template <class T>
constexpr Type type_of() {
  return sizeof(T) == 2 ? Type::bf16 : Type::f32;
}
template <class T>
std::string named(const std::string& name) {
  return name + (sizeof(T) == 2 ? " bf16" : " f32");
}

// Normal numbers, and in between what arithmetic stumbles over.
std::vector<float> numbers(std::size_t count, unsigned seed) {
  const float inf = std::numeric_limits<float>::infinity();
  const float hard[] = {0.f,  -0.f, 1e30f, -1e30f, inf,    -inf,    std::nanf(""),
                        4.5f, -6.f, 90.f,  -90.f,  1e-30f, -1e-40f, 20.f};
  std::vector<float> result = noise(count, seed);
  for (std::size_t i = seed; i < count; i += 5)
    result[i] = hard[i / 5 % std::size(hard)];
  return result;
}

// What Checker::close does, but an element's error may grow with its own size only: with that of
// `sizes`, or of what is expected.
template <class T>
void each_close(Checker& checker, const std::string& name, const std::vector<T>& got,
                std::vector<double> expected, double tolerance,
                const std::vector<double>& sizes = {}) {
  std::vector<float> scaled(got.size());
  for (std::size_t i = 0; i < got.size() && i < expected.size(); ++i) {
    const double size = std::abs(sizes.empty() ? expected[i] : sizes[i]);
    const double unit = std::isfinite(size) ? std::max(1., size) : 1;
    scaled[i] = static_cast<float>(value(got[i]) / unit);
    expected[i] /= unit;
  }
  checker.close(name + " of " + std::to_string(got.size()), scaled, expected, tolerance);
}

double phi(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.)));
}
double gelu(double x) {
  return x * phi(x);
}
double gelu_slope(double x) {
  return phi(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}
double silu(double x) {
  return x / (1 + std::exp(-x));
}
double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s * (1 + x * (1 - s));
}

// Arrays that begin `shift` elements behind a multiple of 256 bytes.
template <class T>
struct Shifted {
  Shifted(const std::vector<float>& values, std::size_t shift_)
      : shift(shift_), array(padded(values)) {}
  T* get() const { return array.get() + shift; }
  // Without the margins, which must be as they were.
  std::vector<T> host(Checker& checker) const {
    std::vector<T> all = array.host();
    bool kept = true;
    for (std::size_t i = 0; i < kMargin; ++i)
      kept =
          kept && value(all[all.size() - 1 - i]) == 77.f && (i >= shift || value(all[i]) == 77.f);
    checker.check("nothing is written beside an array", kept);
    return {all.begin() + static_cast<long>(shift), all.end() - kMargin};
  }

  static constexpr long kMargin = 9;
  std::size_t shift;
  DeviceArray<T> array;

 private:
  std::vector<T> padded(const std::vector<float>& values) const {
    std::vector<float> all(shift, 77.f);
    all.insert(all.end(), values.begin(), values.end());
    all.resize(all.size() + kMargin, 77.f);
    return as<T>(all);
  }
};

template <class T>
std::vector<double> doubles(const std::vector<float>& values) {
  std::vector<double> result;
  for (const float v : values)
    result.push_back(value(T(v)));
  return result;
}

struct Case {
  std::size_t n, shift;
};

template <class T>
double tolerance() {
  return sizeof(T) == 2 ? 4e-3 : 1e-6;
}

double gelu_tanh(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_tanh_slope(double x) {
  const double s = gelu_tanh(x) / x, k = 2 * std::sqrt(2 / M_PI);
  return x == 0 ? 0.5 : s + x * s * (1 - s) * k * (1 + 3 * 0.044715 * x * x);
}

double squared_relu(double x) {  // of f32, which ends before double does
  return x < 0 ? 0 : x * x > std::numeric_limits<float>::max() ? INFINITY : x * x;
}
double squared_relu_slope(double x) {
  return x < 0 ? 0 : 2 * x;
}

// A gelu with a gradient.
struct GeluOf {
  ActivationKind kind;
  double (*of)(double);
  double (*slope_of)(double);
  std::string name;
};
const GeluOf kErf{ActivationKind::gelu, gelu, gelu_slope, "gelu"},
    kTanh{ActivationKind::tanh_gelu, gelu_tanh, gelu_tanh_slope, "tanh gelu"},
    kSquared{ActivationKind::squared_relu, squared_relu, squared_relu_slope, "squared relu"};

template <class T>
void test_gelu(Checker& checker, const GeluOf& gelu_of, Case c, bool in_place) {
  const auto& [kind, of, slope_of, name] = gelu_of;
  const auto inputs = numbers(c.n, 1), gradients = numbers(c.n, 2);
  const Shifted<T> x(inputs, c.shift), y(std::vector<float>(c.n, NAN), c.shift);
  const Shifted<T> dy(gradients, c.shift), other(std::vector<float>(c.n, NAN), c.shift);
  const Shifted<T>& dx = in_place ? dy : other;
  const auto n = static_cast<std::int64_t>(c.n);
  const Shifted<T> again(std::vector<float>(c.n, NAN), c.shift), with(gradients, c.shift);
  need(activation_forward(type_of<T>(), kind, x.get(), y.get(), n, nullptr), name.c_str());
  need(activation_backward(type_of<T>(), kind, x.get(), with.get(), in_place ? with.get() : other.get(),
                     again.get(), n, nullptr),
       name.c_str());
  const std::vector<T> both = (in_place ? with : other).host(checker);
  need(activation_backward(type_of<T>(), kind, x.get(), dy.get(), dx.get(), nullptr, n, nullptr), name.c_str());
  std::vector<double> values, sizes = doubles<T>(gradients), slopes = sizes;
  const std::vector<double> in = doubles<T>(inputs);
  for (std::size_t i = 0; i < c.n; ++i) {
    values.push_back(of(in[i]));
    slopes[i] *= slope_of(in[i]);
    sizes[i] = std::max(std::abs(sizes[i]), std::abs(slopes[i]));
  }
  each_close(checker, named<T>(name), y.host(checker), values, tolerance<T>());
  each_close(checker, named<T>(name + " backward"), dx.host(checker), slopes, tolerance<T>(), sizes);
  const auto same = [&](const std::vector<T>& a, const std::vector<T>& b) {
    return c.n == 0 || std::memcmp(a.data(), b.data(), c.n * sizeof(T)) == 0;
  };
  checker.check(named<T>(name + " and its backward at once, the same bits"),
                same(again.host(checker), y.host(checker)) && same(both, dx.host(checker)));
}

double gelu_quick(double x) {
  return x / (1 + std::exp(-1.702 * x));
}

struct OneGelu {
  ActivationKind kind;
  double (*of)(double);
  const char* name;
};

template <class T>
void test_gelus_in_place(Checker& checker, Case c) {
  const auto inputs = numbers(c.n, 5);
  const std::vector<double> in = doubles<T>(inputs);
  for (const auto& [kind, of, name] :
       {OneGelu{ActivationKind::tanh_gelu, gelu_tanh, "tanh gelu"}, OneGelu{ActivationKind::gelu, gelu, "erf gelu"},
        OneGelu{ActivationKind::quick_gelu, gelu_quick, "quick gelu"}}) {
    const Shifted<T> x(inputs, c.shift);
    need(activation_forward(type_of<T>(), kind, x.get(), x.get(), static_cast<std::int64_t>(c.n), nullptr), name);
    std::vector<double> values;
    for (const double v : in)
      values.push_back(of(v));
    each_close(checker, named<T>(name), x.host(checker), values, tolerance<T>());
  }
}

void test_silu(Checker& checker, Case c, bool in_place) {
  const auto inputs = numbers(c.n, 3), gradients = numbers(c.n, 4);
  const Shifted<float> x(inputs, c.shift), y(std::vector<float>(c.n, NAN), c.shift);
  const Shifted<float> dy(gradients, c.shift), other(std::vector<float>(c.n, NAN), c.shift);
  const Shifted<float>& dx = in_place ? dy : other;
  const auto n = static_cast<std::int64_t>(c.n);
  need(silu_forward(x.get(), y.get(), n, nullptr), "silu");
  need(silu_backward(x.get(), dy.get(), dx.get(), n, nullptr), "silu");
  const std::vector<double> sizes = doubles<float>(gradients);
  std::vector<double> values, slopes = sizes;
  for (std::size_t i = 0; i < c.n; ++i) {
    values.push_back(silu(inputs[i]));
    slopes[i] *= silu_slope(inputs[i]);
  }
  each_close(checker, "silu", y.host(checker), values, 1e-6);
  each_close(checker, "silu backward", dx.host(checker), slopes, 1e-6, sizes);
}

template <class T>
void test_swiglu(Checker& checker, std::size_t rows, std::size_t width, std::size_t shift) {
  const auto inputs = numbers(2 * rows * width, 5), gradients = numbers(rows * width, 6);
  const Shifted<T> x(inputs, shift), dy(gradients, shift);
  const Shifted<T> y(std::vector<float>(rows * width, NAN), shift);
  const Shifted<T> dx(std::vector<float>(2 * rows * width, NAN), shift);
  const auto n = static_cast<std::int64_t>(rows), f = static_cast<std::int64_t>(width);
  need(swiglu_forward(type_of<T>(), x.get(), y.get(), n, f, nullptr), "swiglu");
  need(swiglu_backward(type_of<T>(), x.get(), dy.get(), dx.get(), n, f, nullptr), "swiglu");
  const std::vector<double> in = doubles<T>(inputs), d = doubles<T>(gradients);
  std::vector<double> values(rows * width), slopes(2 * rows * width), sizes(2 * rows * width);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t at = r * width + i, a = 2 * r * width + i, b = a + width;
      values[at] = silu(in[a]) * in[b];
      slopes[a] = d[at] * in[b] * silu_slope(in[a]);
      slopes[b] = d[at] * silu(in[a]);
      sizes[a] = d[at] * in[b], sizes[b] = slopes[b];
    }
  each_close(checker, named<T>("swiglu"), y.host(checker), values, tolerance<T>());
  each_close(checker, named<T>("swiglu backward"), dx.host(checker), slopes, tolerance<T>(), sizes);
}

template <class Y, class X>
void test_add_into(Checker& checker, Case c) {
  const auto before = numbers(c.n, 1), terms = numbers(c.n, 3);
  const Shifted<Y> y(before, c.shift);
  const Shifted<X> x(terms, c.shift);
  need(add_into(type_of<Y>(), y.get(), type_of<X>(), x.get(), static_cast<std::int64_t>(c.n),
                nullptr),
       "add");
  std::vector<double> sums = doubles<Y>(before);
  const std::vector<double> add = doubles<X>(terms);
  for (std::size_t i = 0; i < c.n; ++i)
    sums[i] += add[i];
  each_close(checker, named<Y>(named<X>("add") + " to"), y.host(checker), sums,
             sizeof(Y) == 2 ? 4e-3 : 1e-7);
}

template <class Out, class X, class Y>
void test_scaled_sum(Checker& checker, Case c) {
  const auto first = noise(c.n, 1), second = noise(c.n, 3);
  for (const bool in_place : {false, true}) {
    if (in_place && sizeof(Out) != sizeof(X)) continue;
    const Shifted<X> x(first, c.shift);
    const Shifted<Y> y(second, c.shift);
    const Shifted<Out> other(std::vector<float>(c.n, NAN), c.shift);
    void* const out = in_place ? static_cast<void*>(x.get()) : other.get();
    need(scaled_sum(type_of<Out>(), out, 0.75f, type_of<X>(), x.get(), -1.5f, type_of<Y>(), y.get(),
                    static_cast<std::int64_t>(c.n), nullptr),
         "scaled sum");
    const std::vector<double> a = doubles<X>(first), b = doubles<Y>(second);
    std::vector<double> sums;
    for (std::size_t i = 0; i < c.n; ++i)
      sums.push_back(0.75 * a[i] - 1.5 * b[i]);
    const std::string name = named<Y>(named<X>(named<Out>("scaled sum") + " of") + " and");
    if constexpr (sizeof(Out) == sizeof(X))
      each_close(checker, name, in_place ? x.host(checker) : other.host(checker), sums,
                 sizeof(Out) == 2 ? 4e-3 : 3e-7);
    else
      each_close(checker, name, other.host(checker), sums, sizeof(Out) == 2 ? 4e-3 : 3e-7);
  }
}

void test_add_columns(Checker& checker, std::size_t rows, std::size_t narrow, std::size_t wide,
                      std::size_t shift) {
  const auto a = numbers(rows * narrow, 1), b = numbers(rows * wide, 2);
  const Shifted<float> da(a, shift), db(b, shift), sum(std::vector<float>(a.size(), NAN), shift),
      gradient(std::vector<float>(b.size(), NAN), shift);
  const auto n = static_cast<std::int64_t>(rows), m = static_cast<std::int64_t>(narrow),
             w = static_cast<std::int64_t>(wide);
  need(add_columns(da.get(), db.get(), sum.get(), n, m, w, nullptr), "add columns");
  need(add_columns_backward(da.get(), gradient.get(), n, m, w, nullptr), "add columns");
  std::vector<double> sums, gradients;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < wide; ++j) {
      if (j < narrow) sums.push_back(double{a[i * narrow + j]} + b[i * wide + j]);
      gradients.push_back(j < narrow ? a[i * narrow + j] : 0);
    }
  each_close(checker, "add columns", sum.host(checker), sums, 1e-7);
  each_close(checker, "add columns backward", gradient.host(checker), gradients, 0);
}

// The nearest bf16 by search: of the two neighbours, the one less far away, or the even one. Above
// the largest, infinity is one step further.
std::uint16_t nearest(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const auto low = static_cast<std::uint16_t>(bits >> 16);
  const auto at = [](unsigned b) {
    const double d = std::bit_cast<float>(b << 16);
    return std::isinf(d) ? std::copysign(std::ldexp(1., 128), d) : d;
  };
  if (std::isinf(v)) return low;
  const double below = std::abs(v - at(low)), above = std::abs(v - at(low + 1u));
  return static_cast<std::uint16_t>(low + (above < below || (above == below && low % 2 == 1)));
}

void test_convert(Checker& checker) {
  std::vector<std::uint16_t> all(65536);
  for (unsigned i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::uint16_t>(i);
  const DeviceArray<std::uint16_t> low(all), back(all.size());
  const DeviceArray<float> high(all.size());
  need(convert(Type::bf16, low.get(), Type::f32, high.get(), 65536, nullptr), "convert");
  need(convert(Type::f32, high.get(), Type::bf16, back.get(), 65536, nullptr), "convert");
  const auto wide = high.host();
  const auto returned = back.host();
  bool exact = true;
  for (unsigned i = 0; i < all.size(); ++i) {
    const float v = std::bit_cast<float>(i << 16);
    exact = exact &&
            (std::isnan(v) ? std::isnan(wide[i]) && (returned[i] & 0x7fff) > 0x7f80
                           : std::bit_cast<std::uint32_t>(wide[i]) == i << 16 && returned[i] == i);
  }
  checker.check("every bf16 is an f32, and comes back", exact);

  std::mt19937 engine(5);
  std::vector<float> inputs;
  for (unsigned bits :
       {0x3f808000u, 0x3f818000u, 0x3f808001u, 0x3f807fffu, 0x7f7fffffu, 0xff7f8000u, 0x7f7f7fffu,
        0x00000001u, 0x00008000u, 0x80018000u, 0x7f800000u, 0xff800000u, 0x7f800001u, 0xff800001u,
        0x7fffffffu, 0xffffffffu})
    inputs.push_back(std::bit_cast<float>(bits));
  while (inputs.size() < 4001)
    inputs.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(engine())));
  const DeviceArray<float> from(inputs);
  const DeviceArray<std::uint16_t> to(inputs.size());
  need(convert(Type::f32, from.get(), Type::bf16, to.get(), 4001, nullptr), "convert");
  const auto rounded = to.host();
  bool good = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    good = good && (std::isnan(inputs[i]) ? (rounded[i] & 0x7fff) > 0x7f80
                                          : rounded[i] == nearest(inputs[i]));
  checker.check("f32 becomes the nearest bf16", good);
}

void test_slopes(Checker& checker) {
  const std::vector<float> inputs = noise(300, 9), ones(300, 1.f);
  const DeviceArray<float> x(inputs), dy(ones), dgelu(300), dsilu(300);
  need(activation_backward(Type::f32, ActivationKind::gelu, x.get(), dy.get(), dgelu.get(), nullptr, 300, nullptr), "gelu");
  need(silu_backward(x.get(), dy.get(), dsilu.get(), 300, nullptr), "silu");
  std::vector<double> of_gelu, of_silu;
  for (const double v : inputs) {
    constexpr double h = 1e-5;
    of_gelu.push_back((gelu(v + h) - gelu(v - h)) / (2 * h));
    of_silu.push_back((silu(v + h) - silu(v - h)) / (2 * h));
  }
  checker.close("slope of gelu", dgelu.host(), of_gelu, 1e-6);
  checker.close("slope of silu", dsilu.host(), of_silu, 1e-6);
}

// Many numbers where gelu bends, each within the error that its formula may have; and every bf16.
void test_gelu_everywhere(Checker& checker, const GeluOf& gelu_of) {
  const auto& [kind, of, slope_of, name] = gelu_of;
  std::vector<float> inputs;
  for (int i = 0; i <= 100'000; ++i)
    inputs.push_back(static_cast<float>(-10 + 2e-4 * i));
  const std::size_t n = inputs.size();
  const DeviceArray<float> x(inputs), dy(std::vector<float>(n, 1.f)), y(n), dx(n);
  need(activation_forward(Type::f32, kind, x.get(), y.get(), static_cast<std::int64_t>(n), nullptr), name.c_str());
  need(activation_backward(Type::f32, kind, x.get(), dy.get(), dx.get(), nullptr, static_cast<std::int64_t>(n),
                     nullptr),
       name.c_str());
  std::vector<double> values, slopes;
  for (const double v : inputs) {
    values.push_back(of(v));
    slopes.push_back(slope_of(v));
  }
  each_close(checker, name + " in small steps", y.host(), values, 5e-7);
  each_close(checker, "slope of " + name + " in small steps", dx.host(), slopes, 5e-7);

  std::vector<Bf16> all;
  std::vector<double> exact;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float v = std::bit_cast<float>(bits << 16);
    all.push_back(Bf16(v));
    exact.push_back(of(v));
  }
  const DeviceArray<Bf16> low(all), result(all.size());
  need(activation_forward(Type::bf16, kind, low.get(), result.get(), 0x10000, nullptr), name.c_str());
  each_close(checker, name + " of every bf16", result.host(), exact, 3.91e-3);
}

void test_refusals(Checker& checker) {
  const DeviceArray<float> a(64);
  float* const p = a.get();
  const int invalid = cudaErrorInvalidValue;
  checker.check("no elements are no error",
                activation_forward(Type::bf16, ActivationKind::gelu, nullptr, nullptr, 0, nullptr) == 0 &&
                    silu_forward(nullptr, nullptr, 0, nullptr) == 0 &&
                    add_columns(p, p, p, 0, 4, 4, nullptr) == 0 &&
                    swiglu_forward(Type::f32, p, p, 0, 4, nullptr) == 0 &&
                    swiglu_backward(Type::bf16, p, p, p, 4, 0, nullptr) == 0 &&
                    add_columns(p, p, p, 4, 0, 4, nullptr) == 0 &&
                    add_columns_backward(p, p, 4, 0, 0, nullptr) == 0);
  checker.check("a size below zero is refused",
                activation_forward(Type::f32, ActivationKind::gelu, p, p, -1, nullptr) == invalid &&
                    activation_backward(Type::f32, ActivationKind::gelu, p, p, p, p, -1, nullptr) == invalid &&
                    swiglu_forward(Type::f32, p, p, -1, 4, nullptr) == invalid &&
                    add_columns(p, p, p, -1, 4, 4, nullptr) == invalid &&
                    add_columns(p, p, p, 1, -1, 4, nullptr) == invalid);
  checker.check("gelu in place refuses the same",
                activation_forward(Type::f32, ActivationKind::quick_gelu, p, p, -1, nullptr) == invalid &&
                    activation_forward(Type::bf16, ActivationKind::tanh_gelu, nullptr, nullptr, 0, nullptr) == 0);
  checker.check("quick gelu has no slope",
                activation_backward(Type::f32, ActivationKind::quick_gelu, p, p, p, p, 4, nullptr) == invalid);
  checker.check("too large a size is refused",
                silu_forward(p, p, (1l << 38) + 1, nullptr) == invalid);
  checker.check("columns that b lacks are refused",
                add_columns(p, p, p, 2, 8, 4, nullptr) == invalid &&
                    add_columns_backward(p, p, 2, 8, 4, nullptr) == invalid);
  checker.check("equal types are refused",
                convert(Type::f32, p, Type::f32, p, 4, nullptr) == invalid);
}

void time_all() {
  constexpr std::int64_t kCount = 8192l * 4096, kHidden = 4 * kCount;
  const DeviceArray<float> x(noise(kCount, 1)), y(noise(kCount, 2));
  const DeviceArray<Bf16> low(as<Bf16>(noise(kHidden, 3))), other(as<Bf16>(noise(kHidden, 4)));
  time_launch("gelu bf16", 4. * kHidden, 0,
              [&] { return activation_forward(Type::bf16, ActivationKind::gelu, low.get(), other.get(), kHidden, nullptr); });
  time_launch("tanh gelu in place bf16", 4. * kHidden, 0, [&] {
    return activation_forward(Type::bf16, ActivationKind::tanh_gelu, low.get(), low.get(), kHidden, nullptr);
  });
  time_launch("quick gelu in place bf16", 4. * kHidden, 0, [&] {
    return activation_forward(Type::bf16, ActivationKind::quick_gelu, low.get(), low.get(), kHidden, nullptr);
  });
  time_launch("gelu backward bf16", 6. * kHidden, 0, [&] {
    return activation_backward(Type::bf16, ActivationKind::gelu, low.get(), other.get(), other.get(), nullptr, kHidden,
                         nullptr);
  });
  time_launch("tanh gelu backward bf16", 6. * kHidden, 0, [&] {
    return activation_backward(Type::bf16, ActivationKind::tanh_gelu, low.get(), other.get(), other.get(), nullptr,
                         kHidden, nullptr);
  });
  const DeviceArray<Bf16> again(kHidden);
  time_launch("gelu and its backward bf16", 8. * kHidden, 0, [&] {
    return activation_backward(Type::bf16, ActivationKind::gelu, low.get(), other.get(), other.get(), again.get(), kHidden,
                         nullptr);
  });
  time_launch("swiglu bf16", 6. * kCount, 0, [&] {
    return swiglu_forward(Type::bf16, low.get(), other.get(), 8192, 4096, nullptr);
  });
  time_launch("swiglu backward bf16", 10. * kCount, 0, [&] {
    return swiglu_backward(Type::bf16, low.get(), low.get() + 2 * kCount, other.get(), 8192, 4096,
                           nullptr);
  });
  time_launch("gelu f32", 8. * kCount, 0,
              [&] { return activation_forward(Type::f32, ActivationKind::gelu, x.get(), y.get(), kCount, nullptr); });
  time_launch("silu f32", 8. * kCount, 0,
              [&] { return silu_forward(x.get(), y.get(), kCount, nullptr); });
  time_launch("add bf16 to f32", 10. * kCount, 0,
              [&] { return add_into(Type::f32, y.get(), Type::bf16, low.get(), kCount, nullptr); });
  time_launch("add f32 to f32", 12. * kCount, 0,
              [&] { return add_into(Type::f32, y.get(), Type::f32, x.get(), kCount, nullptr); });
  time_launch("scaled sum of bf16 and f32", 8. * kCount, 0, [&] {
    return scaled_sum(Type::bf16, low.get(), 3.f, Type::bf16, low.get(), 1.f, Type::f32, x.get(),
                      kCount, nullptr);
  });
  time_launch("f32 to bf16", 6. * kCount, 0,
              [&] { return convert(Type::f32, x.get(), Type::bf16, low.get(), kCount, nullptr); });
  time_launch("add columns", 12. * kCount / 2, 0, [&] {
    return add_columns(x.get(), x.get() + kCount / 2, y.get(), 8192, 2048, 2048, nullptr);
  });
}

void tests(Checker& checker) {
  for (const Case c : {Case{0, 0},
                       {1, 0},
                       {7, 0},
                       {8, 0},
                       {9, 0},
                       {2048, 0},
                       {4109, 0},
                       {9, 1},
                       {1030, 3},
                       {1030, 4}}) {
    for (const bool in_place : {false, true}) {
      for (const GeluOf& of : {kErf, kTanh, kSquared}) {
        test_gelu<float>(checker, of, c, in_place);
        test_gelu<Bf16>(checker, of, c, in_place);
      }
      test_silu(checker, c, in_place);
    }
    test_gelus_in_place<float>(checker, c);
    test_gelus_in_place<Bf16>(checker, c);
    test_add_into<float, float>(checker, c);
    test_add_into<float, Bf16>(checker, c);
    test_add_into<Bf16, float>(checker, c);
    test_add_into<Bf16, Bf16>(checker, c);
    test_scaled_sum<float, float, float>(checker, c);
    test_scaled_sum<float, float, Bf16>(checker, c);
    test_scaled_sum<float, Bf16, float>(checker, c);
    test_scaled_sum<Bf16, float, float>(checker, c);
    test_scaled_sum<Bf16, float, Bf16>(checker, c);
    test_scaled_sum<Bf16, Bf16, float>(checker, c);
  }
  for (const std::size_t shift : {0, 1}) {
    for (const std::size_t width : {1, 7, 8, 1024, 2056}) {
      test_swiglu<float>(checker, 3, width, shift);
      test_swiglu<Bf16>(checker, 3, width, shift);
    }
    test_add_columns(checker, 1, 1, 1, shift);
    test_add_columns(checker, 3, 12, 12, shift);
    test_add_columns(checker, 5, 2052, 3076, shift);
    test_add_columns(checker, 4, 2051, 2053, shift);
    test_add_columns(checker, 2, 8, 9, shift);
  }
  test_convert(checker);
  test_slopes(checker);
  for (const GeluOf& of : {kErf, kTanh, kSquared})
    test_gelu_everywhere(checker, of);
  test_refusals(checker);
  if (timed()) time_all();
}

}  // namespace

int main() {
  return run(tests);
}
