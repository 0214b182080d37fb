// Each op against its formula in double, and its gradients against slopes, on every instruction
// set.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/check.h"
#include "ops/conv/patchify.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/modulate.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "ops/position/positions.h"
#include "ops/position/qk_norm_rope.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

float at(const Tensor& t, std::int64_t i, std::int64_t j) {
  return t.floats()[static_cast<std::size_t>(i * t.size(1) + j)];
}

}  // namespace

TEST_CASE("gelu is exact, silu as defined") {
  each_isa([] {
    Tape silent(false);
    std::vector<float> points;
    for (float x = -12; x <= 12; x += 0.037f)
      points.push_back(x);
    const Tensor x = Tensor::from(points, {static_cast<std::int64_t>(points.size()), 1});
    const Tensor g = activate(silent, x, ActivationKind::gelu), s = silu(silent, x);
    double gelu_error = 0, silu_error = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double v = points[i];
      gelu_error =
          std::max(gelu_error, std::abs(g.floats()[i] - 0.5 * v * std::erfc(-v / std::sqrt(2.0))));
      silu_error = std::max(silu_error, std::abs(s.floats()[i] - v / (1 + std::exp(-v))));
    }
    CHECK(gelu_error < 2e-6);
    CHECK(silu_error < 2e-6);
    const std::vector<float> edges{1e30f, -1e30f, std::numeric_limits<float>::quiet_NaN(), 0.f,
                                   std::numeric_limits<float>::infinity()};
    const Tensor e = activate(silent, Tensor::from(edges, {5}), ActivationKind::gelu);
    CHECK(e.floats()[0] == 1e30f);
    CHECK(e.floats()[1] == 0.f);
    CHECK(std::isnan(e.floats()[2]));
    CHECK(e.floats()[3] == 0.f);
    CHECK(std::isinf(e.floats()[4]));
    CHECK(std::isnan(silu(silent, Tensor::from(edges, {5})).floats()[2]));
    CHECK(distance(activate(silent, x.to(DType::bf16), ActivationKind::gelu), g) < 0.01);
    const Tensor leaf = noise_tensor({7, 19}, 1);
    check_gradients({leaf}, [&](Tape& t) { return activate(t, leaf, ActivationKind::gelu); });
    check_gradients({leaf}, [&](Tape& t) { return silu(t, leaf); });
  });
}

TEST_CASE("gelu with tanh is its formula, has its slope, and recomputes before a product") {
  each_isa([] {
    Tape silent(false);
    std::vector<float> points;
    for (float x = -12; x <= 12; x += 0.037f)
      points.push_back(x);
    points.insert(points.end(), {1e30f, -1e30f});
    const Tensor x = Tensor::from(points, {static_cast<std::int64_t>(points.size()), 1});
    const Tensor in_place = x.clone(), dx = Tensor::zeros(x.shape());
    Tape tape;
    tape.watch(x, dx);
    const Tensor y = activate(tape, x, ActivationKind::tanh_gelu), ones = y.clone();
    std::ranges::fill(ones.floats(), 1.f);
    tape.backward(y, ones);
    activate_in_place(silent, in_place, ActivationKind::tanh_gelu);
    CHECK(std::ranges::equal(y.floats(), in_place.floats()));
    double slope_error = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double v = points[i], k = 2 * std::sqrt(2 / M_PI);
      const double s = 1 / (1 + std::exp(-k * (v + 0.044715 * v * v * v)));
      const double slope = s + v * s * (1 - s) * k * (1 + 3 * 0.044715 * v * v);
      slope_error = std::max(slope_error, std::abs(dx.floats()[i] - slope));
    }
    CHECK(slope_error < 1e-6);
    const Tensor leaf = noise_tensor({7, 19}, 1), w = noise_tensor({5, 19}, 2);
    check_gradients({leaf}, [&](Tape& t) { return activate(t, leaf, ActivationKind::tanh_gelu); });
    check_gradients({leaf, w}, [&](Tape& t) {
      return activated_linear(t, leaf, w, ActivationKind::tanh_gelu);
    });
    CHECK(distance(activated_linear(silent, leaf, w, ActivationKind::tanh_gelu),
                   linear(silent, activate(silent, leaf, ActivationKind::tanh_gelu), w)) == 0);
    CHECK_THROWS_WITH(activate(silent, leaf, ActivationKind::quick_gelu),
                      Catch::Contains("no gradient"));
  });
}

TEST_CASE("squared relu is its formula, has its slope, and recomputes before a product") {
  each_isa([] {
    Tape silent(false), tape;
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                    kInfinite = std::numeric_limits<float>::infinity();
    const std::vector<float> points{-kInfinite, -2, -0.f, 0, 0.5f, 3, kInfinite, kNan};
    const Tensor x = Tensor::from(points, {8});
    const Tensor dx = Tensor::zeros(x.shape());
    tape.watch(x, dx);
    const Tensor y = activate(tape, x, ActivationKind::squared_relu), ones = y.clone();
    std::ranges::fill(ones.floats(), 1.f);
    tape.backward(y, ones);
    const std::vector<float> values{0, 0, 0, 0, 0.25f, 9, kInfinite},
        slopes{0, 0, 0, 0, 1, 6, kInfinite};
    CHECK(std::ranges::equal(y.floats().first(7), values));
    CHECK(std::ranges::equal(dx.floats().first(7), slopes));
    CHECK(std::isnan(y.floats()[7]));
    CHECK(std::isnan(dx.floats()[7]));
    const Tensor leaf = noise_tensor({7, 19}, 1), w = noise_tensor({5, 19}, 2);
    check_gradients({leaf},
                    [&](Tape& t) { return activate(t, leaf, ActivationKind::squared_relu); });
    check_gradients({leaf, w}, [&](Tape& t) {
      return activated_linear(t, leaf, w, ActivationKind::squared_relu);
    });
    CHECK(distance(activated_linear(silent, leaf, w, ActivationKind::squared_relu),
                   linear(silent, activate(silent, leaf, ActivationKind::squared_relu), w)) == 0);
  });
}

TEST_CASE("linear: values, bias, and gradients that add up in the leaf") {
  const Tensor x = noise_tensor({5, 7}, 1), w = noise_tensor({3, 7}, 2), b = noise_tensor({3}, 3);
  Tape silent(false);
  const Tensor y = linear(silent, x, w, b, DType::f32);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      double sum = b.floats()[static_cast<std::size_t>(j)];
      for (std::int64_t k = 0; k < 7; ++k)
        sum += double{at(x, i, k)} * at(w, j, k);
      CHECK(at(y, i, j) == Approx(sum).margin(1e-6));
    }
  check_gradients({x, w, b}, [&](Tape& t) { return linear(t, x, w, b, DType::f32); });
  check_gradients({x, w}, [&](Tape& t) {
    return linear(t, linear(t, x, w), noise_tensor({4, 3}, 9));
  });
  CHECK_THROWS_AS(linear(silent, x, noise_tensor({3, 6}, 1)), Error);
  CHECK_THROWS_AS(linear(silent, x, w.to(DType::bf16)), Error);
  CHECK_THROWS_AS(linear(silent, x, w, noise_tensor({4}, 1), DType::f32), Error);
}

TEST_CASE("linear in bf16 follows f32, whatever the shape") {
  for (const auto& [n, in, out] :
       {std::array<std::int64_t, 3>{33, 48, 20}, {1, 16, 64}, {100, 3, 5}}) {
    const Tensor x = noise_tensor({n, in}, 1), w = noise_tensor({out, in}, 2),
                 dy = noise_tensor({n, out}, 3);
    const auto full = gradients({x, w}, dy, [&](Tape& t) { return linear(t, x, w); });
    const Tensor xl = x.to(DType::bf16), wl = w.to(DType::bf16);
    Tensor y;
    for (const DType result : {DType::bf16, DType::f32}) {
      const auto low =
          gradients({xl, wl}, dy, [&](Tape& t) { return y = linear(t, xl, wl, Tensor(), result); });
      CHECK(y.dtype() == result);
      CHECK(distance(low[0], full[0]) < 0.02);
      CHECK(distance(low[1], full[1]) < 0.02);
    }
    Tape silent(false);
    CHECK(distance(y, linear(silent, x, w)) < 0.02);
  }
}

TEST_CASE("add takes leading columns") {
  const Tensor a = noise_tensor({3, 4}, 1), b = noise_tensor({3, 6}, 2);
  Tape silent(false);
  CHECK(at(add(silent, a, b), 2, 3) == at(a, 2, 3) + at(b, 2, 3));
  check_gradients({a, b}, [&](Tape& t) { return add(t, a, b); });
  CHECK_THROWS_AS(add(silent, b, a), Error);
}

namespace {

void check_modulate(std::int64_t width, bool centred) {
  const Tensor x = noise_tensor({150, width}, 1), branch = noise_tensor({150, width}, 2),
               extra = noise_tensor({150, width}, 3);
  const Tensor gate = noise_tensor({3, 3 * width}, 4), modulation = noise_tensor({3, 3 * width}, 5);
  std::vector<std::int32_t> map(150);
  for (std::size_t i = 0; i < 150; ++i)
    map[i] = i < 20 ? 2 : (i < 120 ? 0 : static_cast<int>(i % 3));
  ModulateInput in;
  in.x = x, in.branch = branch, in.gate = gate, in.gate_column = 2 * width;
  in.extra = extra, in.modulation = modulation, in.rows = RowMap(map, Device::cpu);
  in.centred = centred;
  Tape silent(false);
  const auto [stream, normed] = gated_residual_layernorm_modulate(silent, in);
  double worst = 0;
  for (std::int64_t t = 0; t < 150; ++t) {
    const std::int64_t r = map[static_cast<std::size_t>(t)];
    std::vector<double> v;
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < width; ++i)
      v.push_back(at(x, t, i) + double{at(gate, r, 2 * width + i)} * at(branch, t, i) +
                  at(extra, t, i));
    for (const double u : v)
      mean += centred ? u / static_cast<double>(width) : 0;
    for (const double u : v)
      variance += (u - mean) * (u - mean) / static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i) {
      const double n = (v[static_cast<std::size_t>(i)] - mean) / std::sqrt(variance + 1e-6);
      const double y = n * (1 + double{at(modulation, r, width + i)}) + at(modulation, r, i);
      worst = std::max({worst, std::abs(y - at(normed, t, i)),
                        std::abs(v[static_cast<std::size_t>(i)] - at(stream, t, i))});
    }
  }
  CHECK(worst < 2e-5);
  // Both results matter, with different weights.
  check_gradients({x, branch, gate, extra, modulation}, [&](Tape& t) {
    const auto result = gated_residual_layernorm_modulate(t, in);
    return add(t, silu(t, result.stream), result.normed);
  });
  // What several add is computed itself: its gradient is the sum of theirs.
  check_gradients({x, extra}, [&](Tape& t) {
    ModulateInput layer = in;
    layer.extra = silu(t, extra);
    Modulated result;
    for (int i = 0; i < 3; ++i) {
      result = gated_residual_layernorm_modulate(t, layer);
      layer.x = result.stream, layer.branch = result.normed;
    }
    return add(t, silu(t, result.stream), result.normed);
  });
  ModulateInput plain = in;
  plain.branch = plain.gate = plain.extra = Tensor();
  check_gradients({x, modulation}, [&](Tape& t) {
    const auto result = gated_residual_layernorm_modulate(t, plain);
    return add(t, silu(t, result.stream), result.normed);
  });
  // The stream alone.
  ModulateInput sum = in;
  sum.modulation = Tensor();
  CHECK(std::memcmp(gated_residual(silent, sum).raw(), stream.raw(), stream.bytes()) == 0);
  check_gradients({x, branch, gate, extra},
                  [&](Tape& t) { return silu(t, gated_residual(t, sum)); });
  sum.branch = sum.gate = Tensor();
  CHECK_THROWS_AS(gated_residual(silent, sum), Error);
  ModulateInput low = in;
  low.branch = branch.to(DType::bf16), low.out = DType::bf16;
  CHECK(distance(gated_residual_layernorm_modulate(silent, low).normed, normed) < 0.02);
}

}  // namespace

TEST_CASE("a sum in order is that of its summands one by one, rounded once") {
  const std::int64_t n = 2500;  // more than a piece of the CPU's
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int place : {0, 2, 3}) {
      const Tensor all = noise_tensor({4, n}, 1, dtype), own = all.rows(place, place + 1).clone();
      const Tensor others({3, n}, dtype);
      for (int i = 0; i < 3; ++i)
        copy(all.rows(i + (i >= place), i + (i >= place) + 1), others.rows(i, i + 1));
      add_in_order(own, place, others);
      const Tensor plain = all.to(DType::f32), sum({1, n});
      for (std::int64_t i = 0; i < n; ++i) {
        const auto value = [&](std::int64_t row) {
          return plain.floats()[static_cast<std::size_t>(row * n + i)];
        };
        sum.floats()[static_cast<std::size_t>(i)] = ((value(0) + value(1)) + value(2)) + value(3);
      }
      const Tensor wanted = sum.to(dtype).to(DType::f32);
      CHECK(largest_difference(own.to(DType::f32).floats(), wanted.floats()) == 0);
    }
  const Tensor own = noise_tensor({2, 3}, 1);
  CHECK_THROWS_AS(add_in_order(own, 2, noise_tensor({1, 6}, 1)), Error);
  CHECK_THROWS_AS(add_in_order(own, 0, noise_tensor({2, 4}, 1)), Error);
  CHECK_THROWS_AS(add_in_order(own, 0, noise_tensor({1, 6}, 1, DType::bf16)), Error);
}

TEST_CASE("modulate: values and all gradients, with a layer norm and with an RMS norm") {
  each_isa([] {
    for (const std::int64_t width : {24, 37, 64})
      for (const bool centred : {true, false})
        check_modulate(width, centred);
  });
}

TEST_CASE("modulate: one table for gate and modulation, bad rows refused, any number of threads") {
  const Tensor x = noise_tensor({90, 16}, 1), branch = noise_tensor({90, 16}, 2),
               table = noise_tensor({2, 48}, 4);
  ModulateInput in;
  in.x = x, in.branch = branch, in.gate = table, in.gate_column = 32, in.modulation = table;
  std::vector<std::int32_t> map(90);
  for (std::size_t i = 40; i < 90; ++i)
    map[i] = 1;
  in.rows = RowMap(map, Device::cpu);
  const auto run = [&](Tape& t) { return gated_residual_layernorm_modulate(t, in).normed; };
  check_gradients({x, branch, table}, run);
  const int threads = omp_get_max_threads();
  std::vector<std::vector<Tensor>> all;
  for (const int n : {1, 2, 3}) {
    omp_set_num_threads(n);
    all.push_back(gradients({x, branch, table}, noise_tensor({90, 16}, 7), run));
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(std::memcmp(all.back()[i].raw(), all[0][i].raw(), all[0][i].bytes()) == 0);
  }
  omp_set_num_threads(threads);
  map[3] = 2;
  in.rows = RowMap(map, Device::cpu);
  Tape silent(false);
  CHECK_THROWS_AS(run(silent), Error);
  map[3] = -1;
  CHECK_THROWS_AS(RowMap(map, Device::cpu), Error);
}

TEST_CASE("runs of modulation rows fill a GPU, whatever the pack") {
  struct Case {
    std::int64_t width, at_a_time;  // runs on a GPU of 132 multiprocessors
  };
  for (const Case c : {Case{512, 1056},
                       {1024, 528},
                       {1536, 264},
                       {2048, 264},
                       {3072, 132},
                       {4096, 132},
                       {5120, 66},
                       {6144, 66},
                       {12288, 44}})
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{2048},
                                                     {4096},
                                                     {6000},
                                                     {8192},
                                                     {12288},
                                                     {73728},
                                                     {2048, 2048, 2048, 2048},
                                                     {4096, 1024, 700, 2372},
                                                     std::vector<std::int64_t>(8, 1024)}) {
      std::vector<std::int32_t> rows;
      for (std::size_t i = 0; i < lengths.size(); ++i)
        rows.insert(rows.end(), static_cast<std::size_t>(lengths[i]), static_cast<std::int32_t>(i));
      const std::int64_t longest = longest_run(lengths, c.width, Device::cuda);
      const std::int64_t runs = RowMap(rows, Device::cpu, longest).run_count();
      const std::int64_t rounds = (runs + c.at_a_time - 1) / c.at_a_time;
      const double filled =
          static_cast<double>(rows.size()) / static_cast<double>(rounds * c.at_a_time * longest);
      CAPTURE(c.width, rows.size(), lengths.size(), longest, runs, filled);
      CHECK(longest >= 8);
      CHECK(longest <= 64);
      // Where all tokens in shortest runs are too few to fill it, there is one round.
      CHECK((filled > 0.85 || (longest == 8 && rounds == 1)));
    }
  CHECK(longest_run(std::vector<std::int64_t>{8192}, 4096, Device::cpu) == 64);
  CHECK(longest_run({}, 4096, Device::cuda) == 64);
}

TEST_CASE("queries and keys are normed and turned, values pass") {
  each_isa([] {
    for (const int dim : {12, 32, 40}) {
      const Tensor x = noise_tensor({70, 5 * dim}, 1), wq = noise_tensor({dim}, 2),
                   wk = noise_tensor({dim}, 3);
      const RotaryAngles angles = rotary_angles({{5, 2, 7, 12.f}}, dim, {1, 1, 1});
      QkNormRope layout{2, 2, 1, dim, wq, wk, angles.cosines, angles.sines, 1e-5f};
      Tape silent(false);
      const Tensor y = qk_norm_rope(silent, x, layout);
      double worst = 0;
      for (std::int64_t t = 0; t < 70; ++t)
        for (std::int64_t h = 0; h < 5; ++h) {
          double squares = 0;
          for (std::int64_t i = 0; i < dim; ++i)
            squares += std::pow(at(x, t, h * dim + i), 2) / dim;
          const auto normed = [&](std::int64_t i) {
            return at(x, t, h * dim + i) / std::sqrt(squares + 1e-5) *
                   (h < 2 ? wq : wk).floats()[static_cast<std::size_t>(i)];
          };
          for (std::int64_t i = 0; i < dim / 2; ++i) {
            const double c = at(angles.cosines, t, i), s = at(angles.sines, t, i);
            const double first =
                h == 4 ? at(x, t, h * dim + i) : normed(i) * c - normed(i + dim / 2) * s;
            const double second =
                h == 4 ? at(x, t, h * dim + dim / 2 + i) : normed(i + dim / 2) * c + normed(i) * s;
            worst = std::max({worst, std::abs(first - at(y, t, h * dim + i)),
                              std::abs(second - at(y, t, h * dim + dim / 2 + i))});
          }
        }
      CHECK(worst < 1e-5);
      check_gradients({x, wq, wk}, [&](Tape& t) { return silu(t, qk_norm_rope(t, x, layout)); });
      layout.cosines = layout.sines = Tensor();
      check_gradients({x, wq, wk}, [&](Tape& t) { return qk_norm_rope(t, x, layout); });
      CHECK(distance(qk_norm_rope(silent, x.to(DType::bf16), layout),
                     qk_norm_rope(silent, x, layout)) < 0.02);
      layout.value_heads = 2;
      CHECK_THROWS_AS(qk_norm_rope(silent, x, layout), Error);
    }
    const Tensor x = noise_tensor({4, 24}, 1), w = noise_tensor({24}, 2);
    check_gradients({x, w}, [&](Tape& t) { return rmsnorm(t, x, w, 1e-6f); });
  });
}

TEST_CASE("heads are rotated by halves and by pairs, with norms and without") {
  each_isa([] {
    for (const int dim : {12, 36, 64})
      for (const bool norms : {true, false})
        for (const bool pairs : {true, false}) {
          INFO("dim " << dim << " norms " << norms << " pairs " << pairs);
          const Tensor x = noise_tensor({35, 4 * dim}, 1);
          const Tensor w = norms ? noise_tensor({dim}, 2) : Tensor();
          const RotaryAngles angles = rotary_angles({{5, 1, 7, 12.f}}, dim, {1, 1, 1});
          QkNormRope layout{2, 1, 1, dim, w, w, angles.cosines, angles.sines, 1e-5f, pairs};
          Tape silent(false);
          const Tensor y = qk_norm_rope(silent, x, layout);
          double worst = 0;
          for (std::int64_t t = 0; t < 35; ++t)
            for (std::int64_t h = 0; h < 4; ++h) {
              double squares = 0;
              for (std::int64_t i = 0; i < dim; ++i)
                squares += std::pow(at(x, t, h * dim + i), 2) / dim;
              const auto before = [&](std::int64_t i) {
                const double v = at(x, t, h * dim + i);
                return norms && h < 3
                           ? v / std::sqrt(squares + 1e-5) * at(w.reshape({1, dim}), 0, i)
                           : v;
              };
              for (std::int64_t i = 0; i < dim / 2; ++i) {
                const std::int64_t a = pairs ? 2 * i : i, b = pairs ? a + 1 : a + dim / 2;
                const double c = h == 3 ? 1 : at(angles.cosines, t, i);
                const double s = h == 3 ? 0 : at(angles.sines, t, i);
                worst = std::max({worst,
                                  std::abs(before(a) * c - before(b) * s - at(y, t, h * dim + a)),
                                  std::abs(before(b) * c + before(a) * s - at(y, t, h * dim + b))});
              }
            }
          CHECK(worst < 1e-5);
          CHECK(distance(qk_norm_rope(silent, x.to(DType::bf16), layout), y) < 0.02);
          const auto through = [&](Tape& t) { return silu(t, qk_norm_rope(t, x, layout)); };
          if (norms)
            check_gradients({x, w}, through);
          else
            check_gradients({x}, through);
          // Of bf16, against f32: rounded only.
          const Tensor low = x.to(DType::bf16), dy = noise_tensor({35, 4 * dim}, 3);
          const auto of = [&](const Tensor& leaf) {
            return gradients({leaf}, dy.to(leaf.dtype()),
                             [&](Tape& t) { return qk_norm_rope(t, leaf, layout); })[0];
          };
          CHECK(distance(of(low), of(low.to(DType::f32))) < 0.01);
          if (norms) continue;
          layout.cosines = layout.sines = Tensor();
          CHECK_THROWS_WITH(qk_norm_rope(silent, x, layout), Catch::Contains("neither norms"));
        }
  });
  Tape silent(false);
  const Tensor x = noise_tensor({2, 6}, 1), angles = noise_tensor({2, 3}, 2);
  QkNormRope odd{1, 0, 0, 6, Tensor(), Tensor(), angles, angles, 1e-5f, true};
  CHECK_THROWS_AS(qk_norm_rope(silent, x, odd), Error);
  odd.pairs = false;
  CHECK_NOTHROW(qk_norm_rope(silent, x, odd));
}

TEST_CASE("patches: in with the channel slowest, out with the channel fastest") {
  // Two samples, patch 2 x 2 x 3; latent values are their own index.
  const std::vector<PatchGrid> grids{{2, 4, 3}, {4, 2, 6}};
  Tensor latents({2 * (24 + 48)});
  for (std::size_t i = 0; i < latents.floats().size(); ++i)
    latents.floats()[i] = static_cast<float>(i);
  Tape silent(false);
  const Tensor tokens = patchify(silent, latents, grids, 2, 1, {2, 2, 3}, DType::f32);
  REQUIRE(tokens.shape() == Shape{2 + 4, 3 * 12});
  // Sample 0, second token (rows 2 and 3): channel 1, frame 1, row 3, column 2 is (c, pt, ph, pw) =
  // (1, 1, 1, 2), and lies at (1 * 2 + 1) * 12 + 3 * 3 + 2 of the latents.
  CHECK(at(tokens, 1, 1 * 12 + 1 * 6 + 1 * 3 + 2) == 47.f);
  for (std::int64_t t = 0; t < 6; ++t)
    for (std::int64_t i = 24; i < 36; ++i)
      CHECK(at(tokens, t, i) == 0);
  // Last token of sample 1: frame 3, row 1, column 5, channel 0.
  CHECK(at(tokens, 5, 0 * 12 + 1 * 6 + 1 * 3 + 2) == 48.f + 47.f);

  const Tensor out = noise_tensor({6, 24}, 1);
  const Tensor pixels = unpatchify(silent, out, grids, 2, {2, 2, 3});
  // Sample 0, channel 1, frame 1, row 3, column 2: token 1, (ph, pw, pt, c) = (1, 2, 1, 1).
  CHECK(pixels.floats()[47] == at(out, 1, ((1 * 3 + 2) * 2 + 1) * 2 + 1));
  check_gradients(
      {latents},
      [&](Tape& t) {
        return patchify(t, latents, grids, 2, 1, {2, 2, 3}, DType::f32);
      },
      0.05, 1.f);
  check_gradients({out}, [&](Tape& t) { return unpatchify(t, out, grids, 2, {2, 2, 3}); });
  CHECK_THROWS_AS(patchify(silent, latents, {{2, 4, 4}}, 2, 1, {2, 2, 3}, DType::f32), Error);
  CHECK_THROWS_AS(patchify(silent, latents, {{2, 4, 3}}, 2, 1, {2, 2, 3}, DType::f32), Error);
  CHECK_THROWS_AS(unpatchify(silent, noise_tensor({6, 23}, 1), grids, 2, {2, 2, 3}), Error);
}

TEST_CASE("learned positions are normalised, and their tables learn") {
  each_isa([] {
    const Tensor t = noise_tensor({3, 20}, 1), h = noise_tensor({4, 20}, 2),
                 w = noise_tensor({5, 20}, 3);
    const std::vector<TokenGrid> grids{{2, 4, 3}, {1, 1, 5}, {3, 2, 2}};
    Tape silent(false);
    const Tensor e = learned_positions(silent, t, h, w, grids);
    REQUIRE(e.shape() == Shape{24 + 5 + 12, 20});
    double norm = 0;
    for (std::int64_t i = 0; i < 20; ++i)
      norm += std::pow(at(t, 1, i) + at(h, 2, i) + at(w, 1, i), 2) / 20;
    CHECK(at(e, 12 + 6 + 1, 7) ==
          Approx((at(t, 1, 7) + at(h, 2, 7) + at(w, 1, 7)) / (1e-6 + std::sqrt(norm))));
    check_gradients({t, h, w}, [&](Tape& tape) { return learned_positions(tape, t, h, w, grids); });
    CHECK_THROWS_AS(learned_positions(silent, t, h, w, {{4, 1, 1}}), Error);
  });
  const Tensor zero = Tensor::zeros({2, 8});
  for (const Tensor& g : gradients({zero}, noise_tensor({4, 8}, 1), [&](Tape& tape) {
         return learned_positions(tape, zero, Tensor::zeros({1, 8}), Tensor::zeros({2, 8}),
                                  {{2, 1, 2}});
       }))
    for (const float v : g.floats())
      CHECK(std::isfinite(v));
}

TEST_CASE("rotary angles: axes, NTK scale and frame rate") {
  const RotaryAngles a = rotary_angles({{3, 2, 4, 12.f}, {2, 1, 1, 0.f}}, 16, {2, 1, 3});
  REQUIRE(a.cosines.shape() == Shape{26, 8});
  // Head 16: height and width have 4 dimensions, two angles each; time has 8, four angles.
  const std::int64_t token = 2 * 8 + 1 * 4 + 3;  // frame 2, row 1, column 3
  const double theta_t = 10000 * std::pow(2.0, 8.0 / 6), theta_w = 10000 * std::pow(3.0, 4.0 / 2);
  CHECK(at(a.sines, token, 0) == Approx(std::sin(2 * 24.0 / 12)));
  CHECK(at(a.sines, token, 3) == Approx(std::sin(2 * 2 * std::pow(theta_t, -6.0 / 8))));
  CHECK(at(a.cosines, token, 4) == Approx(std::cos(1.0)));
  CHECK(at(a.cosines, token, 5) == Approx(std::cos(std::pow(10000.0, -0.5))));
  CHECK(at(a.sines, token, 6) == Approx(std::sin(3.0)));
  CHECK(at(a.sines, token, 7) == Approx(std::sin(3 * std::pow(theta_w, -0.5))));
  CHECK(at(a.sines, 25, 0) == Approx(std::sin(1.0)));  // an image's position is the bare index
  CHECK_THROWS_AS(rotary_angles({{1, 1, 1, 0.f}}, 10, {1, 1, 1}), Error);
}

TEST_CASE("the sinusoid has its cosines first") {
  const std::vector<float> times{0.f, -1.5f};
  const Tensor s = sinusoid(times, 8);
  CHECK(at(s, 0, 0) == 1);
  CHECK(at(s, 0, 4) == 0);
  CHECK(at(s, 1, 0) == Approx(std::cos(-1.5)));
  CHECK(at(s, 1, 5) == Approx(std::sin(-1.5 * 0.1)));
}
