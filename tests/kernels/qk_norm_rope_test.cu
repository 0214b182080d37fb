// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "kernel_test.h"
#include "qk_norm_rope.h"

using vfm::kernels::QkNormRope;
using vfm::kernels::QkNormRopeBackward;
using vfm::kernels::QkNormRopeForward;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

using Doubles = std::vector<double>;

struct Case {
  int tokens, query_heads, key_heads, value_heads, dim;
  bool rotate = true;
  bool in_place = false;
  int shift = 0;  // elements from an aligned address
  float epsilon = 1e-5f;
  bool pairs = false, norms = true;
  int normed() const { return query_heads + key_heads; }
  int heads() const { return normed() + value_heads; }
  std::size_t size() const { return static_cast<std::size_t>(tokens) * heads() * dim; }
};

struct Numbers {
  std::vector<float> query_weight, key_weight, cosines, sines, x, dy;
};

Numbers numbers(const Case& k) {
  const std::size_t angles = static_cast<std::size_t>(k.tokens) * k.dim / 2;
  Numbers n{noise(k.dim, 1),  noise(k.dim, 2),    noise(angles, 3),
            noise(angles, 4), noise(k.size(), 5), noise(k.size(), 6)};
  for (std::size_t i = 0; i < angles; ++i) {
    const float angle = n.cosines[i];
    n.cosines[i] = std::cos(angle), n.sines[i] = std::sin(angle);
  }
  return n;
}

template <class T>
Doubles doubles(const std::vector<float>& v) {
  Doubles result;
  for (const T& e : as<T>(v))
    result.push_back(value(e));
  return result;
}

double inverse_rms(const double* x, const Case& k) {
  double squares = 0;
  for (int i = 0; i < k.dim; ++i)
    squares += x[i] * x[i];
  // The kernel's sum is f32: what overflows there must here.
  return 1 / std::sqrt(double{static_cast<float>(squares)} / k.dim + double{k.epsilon});
}

// Where the two elements of an angle are.
int first_of(const Case& k, int angle) {
  return k.pairs ? 2 * angle : angle;
}
int second_of(const Case& k, int angle) {
  return k.pairs ? 2 * angle + 1 : k.dim / 2 + angle;
}

const float* weight_of(const Numbers& n, const Case& k, int head) {
  return (head < k.query_heads ? n.query_weight : n.key_weight).data();
}

Doubles forward(const Numbers& n, const Case& k, const Doubles& x) {
  Doubles y = x;
  const int half = k.dim / 2;
  for (int t = 0; t < k.tokens; ++t)
    for (int h = 0; h < k.normed(); ++h) {
      double* v = y.data() + (static_cast<std::size_t>(t) * k.heads() + h) * k.dim;
      const double r = inverse_rms(v, k);
      for (int i = 0; k.norms && i < k.dim; ++i)
        v[i] *= r * double{weight_of(n, k, h)[i]};
      for (int i = 0; k.rotate && i < half; ++i) {
        const double c = n.cosines[t * half + i], s = n.sines[t * half + i];
        const double first = v[first_of(k, i)], second = v[second_of(k, i)];
        v[first_of(k, i)] = first * c - second * s;
        v[second_of(k, i)] = second * c + first * s;
      }
    }
  return y;
}

struct Gradients {
  Doubles dx, query, key;
};

Gradients backward(const Numbers& n, const Case& k, const Doubles& x, const Doubles& dy) {
  Gradients g{dy, Doubles(k.dim), Doubles(k.dim)};
  const int half = k.dim / 2;
  for (int t = 0; t < k.tokens; ++t)
    for (int h = 0; h < k.normed(); ++h) {
      const std::size_t at = (static_cast<std::size_t>(t) * k.heads() + h) * k.dim;
      const float* weight = weight_of(n, k, h);
      Doubles& dweight = h < k.query_heads ? g.query : g.key;
      double* d = g.dx.data() + at;
      for (int i = 0; k.rotate && i < half; ++i) {
        const double c = n.cosines[t * half + i], s = n.sines[t * half + i];
        const double first = d[first_of(k, i)], second = d[second_of(k, i)];
        d[first_of(k, i)] = first * c + second * s;
        d[second_of(k, i)] = second * c - first * s;
      }
      if (!k.norms) continue;
      const double r = inverse_rms(x.data() + at, k);
      double product = 0;
      for (int i = 0; i < k.dim; ++i) {
        const double normed = x[at + i] * r;
        dweight[i] += d[i] * normed;
        d[i] *= weight[i];
        product += d[i] * normed / k.dim;
      }
      for (int i = 0; i < k.dim; ++i)
        d[i] = r * (d[i] - x[at + i] * r * product);
    }
  return g;
}

std::string name_of(const Case& k, bool low, const char* what) {
  std::string name = low ? "bf16 " : "f32 ";
  for (int v : {k.tokens, k.query_heads, k.key_heads, k.value_heads, k.dim})
    name += std::to_string(v) + " ";
  return name + (k.rotate ? "rotated " : "") + (k.pairs ? "in pairs " : "") +
         (k.norms ? "" : "without norms ") + (k.in_place ? "in place " : "") +
         (k.shift ? "shifted " : "") + what;
}

// `values` on the device, k.shift elements behind an aligned address; without values, room.
template <class T>
struct Shifted {
  Shifted(const Case& k, const std::vector<float>& values)
      : shift(k.shift), array(as<T>(padded(k.shift, values))) {}
  Shifted(const Case& k, std::size_t count) : shift(k.shift), array(count + k.shift) {}
  static std::vector<float> padded(int shift, std::vector<float> values) {
    values.insert(values.begin(), shift, 0.f);
    return values;
  }
  T* get() const { return array.get() + shift; }
  std::vector<T> host() const {
    std::vector<T> all = array.host();
    all.erase(all.begin(), all.begin() + shift);
    return all;
  }
  int shift;
  DeviceArray<T> array;
};

struct Tables {
  Tables(const Case& k, const Numbers& n)
      : query(n.query_weight), key(n.key_weight), cosines(n.cosines), sines(n.sines), kase(k) {}
  void set(QkNormRope& call, Type type) const {
    call.tokens = kase.tokens;
    call.query_heads = kase.query_heads;
    call.key_heads = kase.key_heads;
    call.value_heads = kase.value_heads;
    call.head_dim = kase.dim;
    call.type = type;
    call.epsilon = kase.epsilon;
    call.pairs = kase.pairs;
    if (kase.norms && kase.query_heads > 0) call.query_weight = query.get();
    if (kase.norms && kase.key_heads > 0) call.key_weight = key.get();
    if (kase.rotate) call.cosines = cosines.get(), call.sines = sines.get();
  }
  DeviceArray<float> query, key, cosines, sines;
  Case kase;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void compare(Checker& checker, const Case& k, const Numbers& n) {
  constexpr bool kLow = sizeof(T) == 2;
  constexpr Type kType = kLow ? Type::bf16 : Type::f32;
  const Tables tables(k, n);
  const Doubles x = doubles<T>(n.x), dy = doubles<T>(n.dy);
  QkNormRopeForward call;
  tables.set(call, kType);
  const Shifted<T> dx(k, n.x), y(k, k.size());
  call.x = dx.get();
  call.y = k.in_place ? dx.get() : y.get();
  need(qk_norm_rope_forward(call, nullptr), "forward");
  Doubles expected_y = forward(n, k, x);
  checker.close(name_of(k, kLow, "y"), k.in_place ? dx.host() : y.host(), expected_y,
                kLow ? 4e-3 : 2e-6);
  const Shifted<T> kept(k, std::vector<float>(k.size(), 77.f)), from(k, n.x);
  call.x = from.get(), call.y = kept.get(), call.values = false;
  need(qk_norm_rope_forward(call, nullptr), "forward");
  for (std::size_t at = 0; at < k.size(); ++at)
    if (at / k.dim % k.heads() >= static_cast<std::size_t>(k.normed())) expected_y[at] = 77;
  checker.close(name_of(k, kLow, "y without values"), kept.host(), expected_y, kLow ? 4e-3 : 2e-6);

  const Gradients expected = backward(n, k, x, dy);
  std::vector<T> first;
  std::vector<float> first_query;
  for (int again = 0; again < 2; ++again) {
    QkNormRopeBackward back;
    tables.set(back, kType);
    // What is not read without norms.
    const Shifted<T> input(k, k.norms ? n.x : std::vector<float>(k.size(), NAN)), ddy(k, n.dy),
        result(k, k.size());
    const DeviceArray<float> query(k.dim), key(k.dim);
    back.x = input.get();
    back.dy = ddy.get();
    back.dx = k.in_place ? ddy.get() : result.get();
    if (k.norms) back.query_dweight = query.get(), back.key_dweight = key.get();
    const DeviceArray<float> partial(static_cast<std::size_t>(qk_norm_rope_partials(back)));
    back.partial = partial.get();
    need(qk_norm_rope_backward(back, nullptr), "backward");
    const auto got = k.in_place ? ddy.host() : result.host();
    if (again == 0) {
      first = got, first_query = query.host();
      checker.close(name_of(k, kLow, "dx"), got, expected.dx, kLow ? 4e-3 : 4e-6);
      if (!k.norms) continue;
      checker.close(name_of(k, kLow, "query dweight"), query.host(), expected.query, 4e-6);
      checker.close(name_of(k, kLow, "key dweight"), key.host(), expected.key, 4e-6);
    } else {
      checker.check(name_of(k, kLow, "the same bits again"),
                    same_bits(first, got) && (!k.norms || same_bits(first_query, query.host())));
    }
  }
}

void compare_both(Checker& checker, const Case& k) {
  compare<float>(checker, k, numbers(k));
  compare<__nv_bfloat16>(checker, k, numbers(k));
}

// The formula of backward itself, against differences of the double forward.
void differences(Checker& checker, bool pairs) {
  Case k{2, 2, 1, 1, 8};
  k.pairs = pairs;
  const Numbers n = numbers(k);
  const Doubles x = doubles<float>(n.x), dy = doubles<float>(n.dy);
  const Gradients g = backward(n, k, x, dy);
  const auto loss = [&](const Numbers& at, const Doubles& input) {
    const Doubles y = forward(at, k, input);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * dy[i];
    return sum;
  };
  const double step = 1.0 / 1024;
  Doubles dx, query;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Doubles up = x, down = x;
    up[i] += step, down[i] -= step;
    dx.push_back((loss(n, up) - loss(n, down)) / (2 * step));
  }
  for (int i = 0; i < k.dim; ++i) {
    Numbers up = n, down = n;
    up.query_weight[i] += static_cast<float>(step);
    down.query_weight[i] -= static_cast<float>(step);
    query.push_back((loss(up, x) - loss(down, x)) /
                    (double{up.query_weight[i]} - double{down.query_weight[i]}));
  }
  checker.close("differences dx", dx, g.dx, 1e-4);
  checker.close("differences dweight", query, g.query, 1e-4);
}

void strange_values(Checker& checker) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const int dim : {128, 20})
    for (const float odd : {std::nanf(""), inf, -inf, 1e30f, 0.f}) {
      const Case k{5, 3, 2, 2, dim};
      Numbers n = numbers(k);
      // One in a query, a key and a value of different tokens; 1e30 and 0 fill the head.
      for (const int head : {0, k.heads() + 4, 2 * k.heads() + 6})
        for (int i = 0; i < (std::isfinite(odd) ? dim : 1); ++i)
          n.x[(head * dim) + (std::isfinite(odd) ? i : dim / 2 + 3)] = odd;
      compare<float>(checker, k, n);
      compare<__nv_bfloat16>(checker, k, n);
    }
  Case turned{4, 2, 1, 1, 24};  // a rotation spreads these to one other element
  turned.norms = false;
  for (const bool pairs : {false, true}) {
    turned.pairs = pairs;
    Numbers n = numbers(turned);
    n.x[5] = std::nanf(""), n.dy[30] = std::nanf("");
    compare<float>(checker, turned, n);
  }
  const Case k{3, 2, 1, 1, 32};
  Numbers n = numbers(k);
  n.dy[3] = inf, n.dy[40] = std::nanf("");
  compare<float>(checker, k, n);
  Case bare{3, 3, 1, 0, 24};
  bare.epsilon = 0;
  compare_both(checker, bare);
}

void refusals(Checker& checker) {
  const float weight = 1;
  QkNormRopeForward call;
  call.head_dim = 64;
  checker.check("no tokens", qk_norm_rope_forward(call, nullptr) == 0);
  call.tokens = 1, call.query_heads = 1;
  checker.check("neither norms nor angles",
                qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  call.query_weight = &weight;
  call.cosines = &weight;
  checker.check("no sines", qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  call.sines = &weight, call.key_heads = 1;
  checker.check("no weight of keys", qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  call.key_heads = 0, call.back = true;
  checker.check("norms back", qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  call.back = false, call.pairs = true, call.head_dim = 66;
  checker.check("odd halves", qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  call.cosines = call.sines = nullptr, call.pairs = false;
  for (const int dim : {-2, 0, 7, 258}) {
    call.head_dim = dim;
    checker.check("dim", qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  }
  call.head_dim = 64, call.tokens = 1l << 31;
  checker.check("too many", qk_norm_rope_forward(call, nullptr) == cudaErrorInvalidValue);
  QkNormRopeBackward back;
  back.head_dim = 64, back.tokens = 1, back.query_heads = 1, back.query_weight = &weight;
  checker.check("no partial wanted", qk_norm_rope_partials(back) == 0);
  float out = 0;
  back.query_dweight = &out;
  checker.check("no partial", qk_norm_rope_backward(back, nullptr) == cudaErrorInvalidValue);
  back.query_weight = nullptr, back.cosines = back.sines = &weight;
  checker.check("a weight that is not there has no gradient",
                qk_norm_rope_backward(back, nullptr) == cudaErrorInvalidValue);
}

void time_bf16(int tokens, int heads, int dim) {
  Case k{tokens, heads, heads, heads, dim};
  const Numbers n = numbers(k);
  const Tables tables(k, n);
  const DeviceArray<__nv_bfloat16> x(as<__nv_bfloat16>(n.x)), y(k.size()), dx(k.size());
  QkNormRopeForward call;
  tables.set(call, Type::bf16);
  call.x = x.get(), call.y = y.get();
  const double bytes = 2.0 * static_cast<double>(k.size());
  const double angles = 4.0 * tokens * dim;
  const std::string name = "qk_norm_rope bf16 dim " + std::to_string(dim);
  time_launch(name + " forward", 2 * bytes + angles, 0,
              [&] { return qk_norm_rope_forward(call, nullptr); });
  call.x = y.get();  // normed again and again, which does not change the time
  time_launch(name + " forward in place", 2 * bytes * 2 / 3 + angles, 0,
              [&] { return qk_norm_rope_forward(call, nullptr); });
  QkNormRopeBackward back;
  tables.set(back, Type::bf16);
  const DeviceArray<float> query(dim), key(dim);
  back.x = x.get(), back.dy = y.get(), back.dx = dx.get();
  back.query_dweight = query.get(), back.key_dweight = key.get();
  const DeviceArray<float> partial(static_cast<std::size_t>(qk_norm_rope_partials(back)));
  back.partial = partial.get();
  // Values are read once, the rest is read twice: x and dy.
  time_launch(name + " backward", bytes * 8 / 3 + angles, 0,
              [&] { return qk_norm_rope_backward(back, nullptr); });
  back.dx = y.get();
  time_launch(name + " backward in place", bytes * 2 + angles, 0,
              [&] { return qk_norm_rope_backward(back, nullptr); });
}

void tests(Checker& checker) {
  for (const int dim : {2, 6, 16, 20, 32, 64, 80, 96, 128, 130, 256})
    for (const bool rotate : {false, true})
      for (const bool in_place : {false, true})
        compare_both(checker, {3, 2, 1, 1, dim, rotate, in_place});
  for (const int dim : {32, 54, 128})
    for (const Case& k : {Case{0, 2, 1, 1, dim}, Case{1, 1, 0, 0, dim}, Case{7, 0, 5, 1, dim},
                          Case{4, 9, 2, 0, dim}, Case{5, 0, 0, 3, dim}, Case{2, 0, 0, 0, dim},
                          Case{3, 3, 0, 8, dim}, Case{5, 1, 1, 1, dim, true, true, 1}})
      compare_both(checker, k);
  for (const int dim : {4, 16, 20, 64, 80, 128, 256})
    for (const bool norms : {true, false})
      for (const bool in_place : {false, true})
        for (const bool pairs : {true, false})
          if (pairs || !norms)
            compare_both(checker, {3, 2, 1, 1, dim, true, in_place, 0, 1e-5f, pairs, norms});
  for (const bool pairs : {true, false})
    for (const Case& k : {Case{0, 2, 1, 1, 32}, Case{7, 0, 5, 1, 128}, Case{4, 9, 2, 0, 32},
                          Case{5, 1, 1, 1, 32, true, true, 1}, Case{41, 9, 3, 3, 100}}) {
      Case bare = k;
      bare.pairs = pairs, bare.norms = false;
      compare_both(checker, bare);
    }
  compare_both(checker, {41, 9, 3, 3, 100, true, false, 0, 1e-5f, true});
  // Several blocks of each kind.
  compare_both(checker, {90, 4, 2, 1, 64});
  compare_both(checker, {41, 9, 3, 3, 100});
  strange_values(checker);
  differences(checker, false);
  differences(checker, true);
  refusals(checker);
  if (timed()) {
    time_bf16(8192, 32, 128);
    time_bf16(8192, 64, 64);
  }
}

}  // namespace

int main() {
  return run(tests);
}
