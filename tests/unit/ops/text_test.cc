// What only text encoders need: attention with a relative bias, activations in place.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.h"
#include "ops/attention/attention.h"
#include "ops/check.h"
#include "ops/pointwise/activations.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

AttentionPack pack_of(std::vector<std::int64_t> lengths, int heads, int head_dim) {
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = std::move(lengths);
  pack.heads = pack.key_heads = heads;
  pack.head_dim = head_dim;
  return pack;
}

/// The textbook, in double.
Tensor textbook(const AttentionPack& pack, const Tensor& q, const Tensor& k, const Tensor& v,
                const Tensor& bias) {
  const std::int64_t width = q.size(1), reach = (bias.size(1) + 1) / 2;
  const Tensor a = q.to(DType::f32), b = k.to(DType::f32), c = v.to(DType::f32);
  Tensor out(q.shape());
  std::int64_t start = 0;
  for (const std::int64_t n : pack.query_lengths) {
    for (int h = 0; h < pack.heads; ++h)
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = [&](const Tensor& t, std::int64_t row, int d) -> float& {
          return t.data<float>()[(start + row) * width + h * pack.head_dim + d];
        };
        std::vector<double> w(static_cast<std::size_t>(n));
        for (std::int64_t j = 0; j < n; ++j) {
          double& score = w[static_cast<std::size_t>(j)];
          score = bias.data<float>()[h * bias.size(1) + reach - 1 + i - j];
          for (int d = 0; d < pack.head_dim; ++d)
            score += double{at(a, i, d)} * at(b, j, d);
        }
        const double top = *std::max_element(w.begin(), w.end());
        double sum = 0;
        for (double& x : w)
          sum += x = std::exp(x - top);
        for (int d = 0; d < pack.head_dim; ++d) {
          double value = 0;
          for (std::int64_t j = 0; j < n; ++j)
            value += w[static_cast<std::size_t>(j)] / sum * at(c, j, d);
          at(out, i, d) = static_cast<float>(value);
        }
      }
    start += n;
  }
  return out;
}

}  // namespace

TEST_CASE("relative attention is softmax(q k + bias) v, unscaled") {
  Tape tape(false);
  struct Case {
    std::vector<std::int64_t> lengths;
    int heads, head_dim;
    std::int64_t reach;
  };
  each_isa([&] {
    for (const Case& c : {Case{{5, 1, 70, 0, 130}, 3, 8, 130}, Case{{64}, 2, 64, 80},
                          Case{{33, 65}, 1, 128, 65}, Case{{17}, 2, 5, 17}})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const AttentionPack pack = pack_of(c.lengths, c.heads, c.head_dim);
        std::int64_t rows = 0;
        for (const std::int64_t n : c.lengths)
          rows += n;
        const Shape shape{rows, std::int64_t{c.heads} * c.head_dim};
        const Tensor q = noise_tensor(shape, 1, dtype), k = noise_tensor(shape, 2, dtype);
        const Tensor v = noise_tensor(shape, 3, dtype),
                     bias = noise_tensor({c.heads, 2 * c.reach - 1}, 4);
        const Tensor out = relative_attention(tape, q, k, v, bias, pack);
        CHECK(out.dtype() == dtype);
        CHECK(distance(out, textbook(pack, q, k, v, bias)) < (dtype == DType::f32 ? 1e-5 : 8e-3));
      }
  });
}

TEST_CASE("relative attention refuses what does not fit") {
  Tape tape(false), recording;
  const Tensor q = noise_tensor({6, 8}, 1), bias = noise_tensor({2, 11}, 2);
  const AttentionPack pack = pack_of({6}, 2, 4);
  CHECK_NOTHROW(relative_attention(tape, q, q, q, bias, pack));
  CHECK_THROWS_WITH(relative_attention(recording, q, q, q, bias, pack),
                    Catch::Contains("no gradient"));
  CHECK_THROWS_AS(relative_attention(tape, q, q, q, noise_tensor({2, 9}, 2), pack), Error);
  CHECK_THROWS_AS(relative_attention(tape, q, q, q, noise_tensor({1, 11}, 2), pack), Error);
  CHECK_THROWS_AS(relative_attention(tape, q, q.rows(0, 5), q, bias, pack), Error);
  CHECK_THROWS_AS(relative_attention(tape, q, q, q.rows(0, 5), bias, pack), Error);
  CHECK_THROWS_AS(relative_attention(tape, q, q, q, bias, pack_of({5}, 2, 4)), Error);
}

TEST_CASE("activations in place") {
  Tape tape(false), recording;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  each_isa([&] {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = noise_tensor({3, 37}, 5), factor = noise_tensor({3, 37}, 6, dtype);
      std::vector<float> values(x.floats().begin(), x.floats().end());
      for (const float extreme : {0.f, -0.f, 1e4f, -1e4f, 30.f, -30.f})
        values.push_back(extreme);
      const auto n = static_cast<std::int64_t>(values.size());
      const Tensor start = Tensor::from(values, {n}).to(dtype);
      const Tensor ones = Tensor::from(std::vector<float>(values.size(), 1.f), {n}).to(dtype);
      const Tensor by = factor.reshape({3 * 37});
      Tensor positive = start.clone(), gelu = start.clone();
      relu_in_place(tape, positive);
      gated_gelu_in_place(tape, gelu, ones);
      const Tensor p = positive.to(DType::f32), g = gelu.to(DType::f32), s = start.to(DType::f32);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double v = s.floats()[i];
        CHECK(p.floats()[i] == std::max(v, 0.));
        const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
        const double expected = 0.5 * v * (1 + std::tanh(u));
        CHECK(g.floats()[i] ==
              Approx(expected).epsilon(dtype == DType::f32 ? 2e-6 : 4e-3).margin(1e-6));
      }
      const Tensor product = start.rows(0, 3 * 37).clone();
      gated_gelu_in_place(tape, product, by);
      for (std::size_t i = 0; i < 3 * 37; ++i)
        CHECK(product.to(DType::f32).floats()[i] ==
              Approx(g.floats()[i] * by.to(DType::f32).floats()[i]).epsilon(1e-2).margin(1e-6));
    }
  });
  const Tensor nan = Tensor::from(std::vector<float>(20, kNan), {20}), one = noise_tensor({20}, 7);
  relu_in_place(tape, nan);
  CHECK(std::isnan(nan.floats()[3]));
  CHECK_THROWS_AS(relu_in_place(recording, one), Error);
  CHECK_THROWS_AS(gated_gelu_in_place(recording, one, one.clone()), Error);
  CHECK_THROWS_AS(gated_gelu_in_place(tape, one, noise_tensor({19}, 7)), Error);
}

namespace {

double gelu_in_double(ActivationKind kind, double v) {
  switch (kind) {
    case ActivationKind::tanh_gelu:
      return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case ActivationKind::gelu:
      return 0.5 * v * std::erfc(-v / std::sqrt(2.));
    case ActivationKind::quick_gelu:
      return v / (1 + std::exp(-1.702 * v));
    case ActivationKind::squared_relu:
      return v < 0 ? 0 : v * v;
  }
  return 0;
}

}  // namespace

TEST_CASE("the three gelus are their formulas, between -12 and 12 and far beyond") {
  Tape tape(false);
  std::vector<float> values;
  for (int i = -12000; i <= 12000; ++i)
    values.push_back(static_cast<float>(i) * 1e-3f);
  for (const float v :
       {0.f, -0.f, 1e-30f, -1e-30f, 1e-40f, 50.f, -50.f, 1e4f, -1e4f, 1e20f, -1e20f, 3e38f, -3e38f})
    values.push_back(v);
  const auto n = static_cast<std::int64_t>(values.size());
  each_isa([&] {
    for (const ActivationKind kind :
         {ActivationKind::tanh_gelu, ActivationKind::gelu, ActivationKind::quick_gelu}) {
      const Tensor x = Tensor::from(values, {n});
      activate_in_place(tape, x, kind);
      double worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = gelu_in_double(kind, values[i]), error = x.floats()[i] - expected;
        worst = std::max(worst, std::abs(error) / std::max(1., std::abs(expected)));
      }
      INFO("kind " << static_cast<int>(kind));
      CHECK(worst < 1e-6);
    }
  });
}

TEST_CASE("the three gelus of every bf16: rounded once, NaN stays NaN") {
  Tape tape(false);
  const std::int64_t n = 1 << 16;
  each_isa([&] {
    for (const ActivationKind kind :
         {ActivationKind::tanh_gelu, ActivationKind::gelu, ActivationKind::quick_gelu}) {
      const Tensor x({n}, DType::bf16);
      auto* const bits = static_cast<std::uint16_t*>(x.raw());
      for (std::int64_t i = 0; i < n; ++i)
        bits[i] = static_cast<std::uint16_t>(i);
      const Tensor before = x.to(DType::f32);
      activate_in_place(tape, x, kind);
      const Tensor after = x.to(DType::f32), in_f32 = before.clone();
      activate_in_place(tape, in_f32, kind);
      const Tensor rounded = in_f32.to(DType::bf16).to(DType::f32);
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const float v = before.floats()[i], got = after.floats()[i];
        if (std::isnan(v)) {
          // That with all mantissa bits set is none that arithmetic makes (ops/cpu/simd.h).
          wrong += !std::isnan(got) && (i & 0x7f) != 0x7f;
          continue;
        }
        const bool same =
            std::isnan(got) ? std::isnan(rounded.floats()[i]) : got == rounded.floats()[i];
        const double expected = gelu_in_double(kind, v);
        const bool close =
            std::isinf(v) || std::abs(got - expected) <= 4e-3 * std::abs(expected) + 1e-6;
        wrong += !same || !close;
      }
      INFO("kind " << static_cast<int>(kind));
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("gelu in place: erf has the bits of gelu, and any number of threads those of one") {
  Tape tape(false);
  const int threads = omp_get_max_threads();
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  };
  each_isa([&] {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = noise_tensor({37, 1001}, 8, dtype), erf = x.clone();
      activate_in_place(tape, erf, ActivationKind::gelu);
      CHECK(same(erf, activate(tape, x, ActivationKind::gelu)));
      for (const ActivationKind kind :
           {ActivationKind::tanh_gelu, ActivationKind::gelu, ActivationKind::quick_gelu}) {
        const Tensor once = x.clone(), gated = x.clone();
        activate_in_place(tape, once, kind);
        for (const int n : {1, 3, 8}) {
          omp_set_num_threads(n);
          const Tensor again = x.clone();
          activate_in_place(tape, again, kind);
          CHECK(same(again, once));
        }
        omp_set_num_threads(threads);
        gated_gelu_in_place(tape, gated,
                            Tensor::from(std::vector<float>(37 * 1001, 1.f), {37, 1001}).to(dtype));
        CHECK(same(gated, once) == (kind == ActivationKind::tanh_gelu));
      }
    }
  });
}

TEST_CASE("activations in place leave what is beside them") {
  Tape tape(false);
  each_isa([&] {
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const std::int64_t n : {1, 8, 31, 70}) {
        const Tensor whole = noise_tensor({n + 2}, 9, dtype), factor = noise_tensor({n}, 10, dtype);
        const auto check_within = [&](const std::function<void(const Tensor&)>& act) {
          const Tensor some = whole.clone(), apart = whole.rows(1, n + 1).clone();
          act(some.rows(1, n + 1));
          act(apart);
          const Tensor before = whole.to(DType::f32), after = some.to(DType::f32);
          for (const std::int64_t beside : {std::int64_t{0}, n + 1})
            CHECK(after.data<float>()[beside] == before.data<float>()[beside]);
          CHECK(distance(some.rows(1, n + 1), apart) == 0);
        };
        check_within([&](const Tensor& x) { relu_in_place(tape, x); });
        check_within([&](const Tensor& x) { gated_gelu_in_place(tape, x, factor); });
        for (const ActivationKind kind :
             {ActivationKind::tanh_gelu, ActivationKind::gelu, ActivationKind::quick_gelu})
          check_within([&](const Tensor& x) { activate_in_place(tape, x, kind); });
      }
  });
}

TEST_CASE("gelu in place keeps infinity, has no gradient, and is of f32 and bf16") {
  Tape tape(false), recording;
  const float inf = std::numeric_limits<float>::infinity();
  for (const ActivationKind kind :
       {ActivationKind::tanh_gelu, ActivationKind::gelu, ActivationKind::quick_gelu}) {
    const Tensor x = Tensor::from(std::vector<float>{inf, std::nanf(""), 1.f, -inf}, {4});
    const Tensor none({0, 5});
    activate_in_place(tape, x, kind);
    CHECK(x.floats()[0] == inf);
    CHECK(std::isnan(x.floats()[1]));
    CHECK(x.floats()[2] == Approx(gelu_in_double(kind, 1)));
    CHECK(std::isnan(x.floats()[3]));
    CHECK_NOTHROW(activate_in_place(tape, none, kind));
    CHECK_THROWS_WITH(activate_in_place(recording, x, kind), Catch::Contains("no gradient"));
    CHECK_THROWS_WITH(activate_in_place(tape, Tensor({3}, DType::f16), kind),
                      Catch::Contains("F16"));
  }
}
