// What the networks with a Llama's layers need beside the others: SwiGLU, casts, rows in another
// order, positions without a norm, YaRN, embeddings, cross-entropy.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.h"
#include "ops/check.h"
#include "ops/loss/cross_entropy.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/embedding.h"
#include "ops/pointwise/row_order.h"
#include "ops/position/positions.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

using Op = std::function<Tensor(Tape&)>;

/// Results and gradients of two ways to compute the same.
void check_same_bits(const std::vector<Tensor>& inputs, const Tensor& cotangent, const Op& plain,
                     const Op& recomputed) {
  Tape silent(false);
  const Tensor y = plain(silent), same = recomputed(silent);
  CHECK(std::memcmp(y.raw(), same.raw(), y.bytes()) == 0);
  const auto expected = gradients(inputs, cotangent, plain);
  const auto found = gradients(inputs, cotangent, recomputed);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    CHECK(std::memcmp(expected[i].raw(), found[i].raw(), expected[i].bytes()) == 0);
}

}  // namespace

TEST_CASE("swiglu is silu of the first half times the second") {
  each_isa([] {
    for (const std::int64_t width : {1, 19, 64}) {
      const Tensor x = noise_tensor({5, 2 * width}, 1);
      Tape silent(false);
      const Tensor y = swiglu(silent, x);
      REQUIRE(y.shape() == Shape{5, width});
      double worst = 0;
      for (std::int64_t row = 0; row < 5; ++row)
        for (std::int64_t i = 0; i < width; ++i) {
          const double a = x.data<float>()[row * 2 * width + i];
          const double b = x.data<float>()[row * 2 * width + width + i];
          worst = std::max(worst,
                           std::abs(y.data<float>()[row * width + i] - a / (1 + std::exp(-a)) * b));
        }
      CHECK(worst < 3e-6);
      CHECK(distance(swiglu(silent, x.to(DType::bf16)), y) < 0.02);
      check_gradients({x}, [&](Tape& t) { return swiglu(t, x); });
    }
  });
  Tape silent(false);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor edge = swiglu(silent, Tensor::from(std::vector<float>{-1e30f, nan, 1, 1}, {1, 4}));
  CHECK(edge.floats()[0] == 0);
  CHECK(std::isnan(edge.floats()[1]));
  CHECK_THROWS_AS(swiglu(silent, noise_tensor({2, 3}, 1)), Error);
}

TEST_CASE("swiglu_linear is swiglu and linear, to the bit, without keeping what is between") {
  for (const auto& pair :
       {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}}) {
    const DType dtype = pair.first, out = pair.second;
    const Tensor x = noise_tensor({9, 40}, 1, dtype), w = noise_tensor({7, 20}, 2, dtype);
    const auto plain = [&](Tape& t) { return linear(t, swiglu(t, x), w, Tensor(), out); };
    const auto recomputed = [&](Tape& t) { return swiglu_linear(t, x, w, out); };
    check_same_bits({x, w}, noise_tensor({9, 7}, 3, out), plain, recomputed);
  }
}

TEST_CASE("rmsnorm_linear is rmsnorm, cast and linear, to the bit, without what is between") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = noise_tensor({9, 20}, 1), scale = noise_tensor({20}, 2),
                 w = noise_tensor({7, 20}, 3, dtype);
    const auto plain = [&](Tape& t) {
      return linear(t, cast(t, rmsnorm(t, x, scale, 1e-5f), dtype), w);
    };
    const auto recomputed = [&](Tape& t) { return rmsnorm_linear(t, x, scale, 1e-5f, w); };
    check_same_bits({x, scale, w}, noise_tensor({9, 7}, 4, dtype), plain, recomputed);
    // With what ranks exchange before the product: here each row twice.
    std::vector<std::int32_t> twice;
    for (std::int32_t i = 0; i < 18; ++i)
      twice.push_back(i / 2);
    const RowChoice choice(twice, 9, Device::cpu);
    const Exchange exchange{[&](const Tensor& rows) { return choice.take(rows); },
                            [&](const Tensor& dy) { return choice.add_back(dy); }};
    check_same_bits(
        {x, scale, w}, noise_tensor({18, 7}, 5, dtype),
        [&](Tape& t) {
          const Tensor normed = cast(t, rmsnorm(t, x, scale, 1e-5f), dtype);
          return linear(t, run_exchange(t, normed, exchange), w);
        },
        [&](Tape& t) { return rmsnorm_linear(t, x, scale, 1e-5f, w, exchange); });
  }
}

TEST_CASE("a cast changes the type, and gradients pass it") {
  const Tensor x = noise_tensor({4, 6}, 1);
  Tape silent(false);
  CHECK(cast(silent, x, DType::f32).id() == x.id());
  const Tensor low = cast(silent, x, DType::bf16);
  CHECK(low.dtype() == DType::bf16);
  CHECK(distance(low, x) < 0.01);
  // Back in f32 behind it, and beside it: both ways add up.
  const Tensor cotangent = noise_tensor({4, 6}, 2);
  const auto gradient = gradients({x}, cotangent, [&](Tape& t) {
    return add(t, x, cast(t, cast(t, x, DType::bf16), DType::f32));
  });
  for (std::size_t i = 0; i < 24; ++i)
    CHECK(gradient[0].floats()[i] == Approx(2 * cotangent.floats()[i]).epsilon(0.01));
}

TEST_CASE("rows go into another order and come back, and so do their gradients") {
  const std::vector<std::int32_t> order = {3, 0, 4, 1, 2};
  const RowOrder rows(order, Device::cpu);
  const Tensor x = noise_tensor({5, 3}, 1);
  Tape silent(false);
  const Tensor y = reorder_rows(silent, x, rows);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      CHECK(y.floats()[3 * i + j] == x.floats()[3 * static_cast<std::size_t>(order[i]) + j]);
  CHECK(distance(restore_rows(silent, y, rows), x) == 0);
  CHECK(distance(reorder_rows(silent, x.to(DType::bf16), rows), y) < 0.01);
  check_gradients({x}, [&](Tape& t) { return reorder_rows(t, x, rows); });
  check_gradients({x}, [&](Tape& t) { return restore_rows(t, x, rows); });
  CHECK_THROWS_AS(RowOrder(std::vector<std::int32_t>{0, 0}, Device::cpu), Error);
  CHECK_THROWS_AS(RowOrder(std::vector<std::int32_t>{0, 2}, Device::cpu), Error);
  CHECK_THROWS_AS(RowOrder(std::vector<std::int32_t>{0, -1}, Device::cpu), Error);
}

TEST_CASE("rows are chosen several times, and what goes back to one is added") {
  const std::vector<std::int32_t> numbers = {2, 0, 2, 3, 2};
  const RowChoice choice(numbers, 5, Device::cpu);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = noise_tensor({5, 3}, 1, dtype), dy = noise_tensor({5, 3}, 2, dtype);
    const Tensor y = choice.take(x).to(DType::f32), back = choice.add_back(dy).to(DType::f32);
    CHECK(choice.take(x).dtype() == dtype);
    CHECK(choice.add_back(dy).dtype() == dtype);
    Tensor sums = Tensor::zeros({5, 3});
    for (std::size_t i = 0; i < 15; ++i) {
      const std::size_t from = 3 * static_cast<std::size_t>(numbers[i / 3]) + i % 3;
      CHECK(y.floats()[i] == x.to(DType::f32).floats()[from]);
      sums.floats()[from] += dy.to(DType::f32).floats()[i];
    }
    CHECK(distance(back, sums.to(dtype)) == 0);
  }
  CHECK_THROWS_AS(choice.take(noise_tensor({4, 3}, 1)), Error);
  CHECK_THROWS_AS(RowChoice(numbers, 3, Device::cpu), Error);
}

TEST_CASE("learned positions without a norm are the sum of their rows") {
  each_isa([] {
    const Tensor t = noise_tensor({3, 20}, 1), h = noise_tensor({4, 20}, 2),
                 w = noise_tensor({5, 20}, 3);
    const std::vector<TokenGrid> grids = {{2, 3, 4}, {1, 2, 5}};
    Tape silent(false);
    const Tensor y = learned_positions(silent, t, h, w, grids, false);
    const auto row = [](const Tensor& table, std::size_t at, std::size_t i) {
      return table.floats()[at * 20 + i];
    };
    // Token (1, 2, 3) of the first sample.
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(row(y, 23, i) == Approx(row(t, 1, i) + row(h, 2, i) + row(w, 3, i)).margin(1e-6));
    check_gradients({t, h, w},
                    [&](Tape& tape) { return learned_positions(tape, t, h, w, grids, false); });
    std::vector<TokenGrid> half = {{1, 3, 1}};
    half[0].step = {1, 0.5, 1};
    const Tensor between = learned_positions(silent, t, h, w, half, false);
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(row(between, 1, i) ==
            Approx(row(t, 0, i) + (row(h, 0, i) + row(h, 1, i)) / 2 + row(w, 0, i)).margin(1e-6));
  });
}

TEST_CASE("an embedding takes rows, and their gradients add up in order") {
  const Tensor table = noise_tensor({6, 5}, 1);
  const std::vector<std::int32_t> numbers = {4, 0, 4, 5, 4};
  Tape silent(false);
  const Tensor y = embedding(silent, table, numbers);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 5; ++j)
      CHECK(y.floats()[5 * i + j] == table.floats()[5 * static_cast<std::size_t>(numbers[i]) + j]);
  check_gradients({table}, [&](Tape& t) { return embedding(t, table, numbers); });
  // Also where the table is no leaf.
  check_gradients({table}, [&](Tape& t) { return embedding(t, silu(t, table), numbers); });
  // What is in another rank's part of the table is zero here.
  const std::vector<std::int32_t> some = {4, -1, 0, -1, 4};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor part = embedding(silent, table.to(dtype), some).to(DType::f32);
    for (std::size_t i = 0; i < 25; ++i)
      CHECK(part.floats()[i] ==
            (i / 5 % 2 == 1 ? 0
                            : table.to(dtype)
                                  .to(DType::f32)
                                  .floats()[5 * static_cast<std::size_t>(some[i / 5]) + i % 5]));
  }
  check_gradients({table}, [&](Tape& t) { return embedding(t, table, some); });
  const std::vector<std::int32_t> beyond = {6}, below = {-2};
  CHECK_THROWS_AS(embedding(silent, table, beyond), Error);
  CHECK_THROWS_AS(embedding(silent, table, below), Error);
}

TEST_CASE("cross-entropy and z-loss: values, gradients, tokens without a target") {
  each_isa([] {
    for (const std::int64_t vocabulary : {1, 7, 33, 160}) {
      const Tensor logits = noise_tensor({5, vocabulary}, 1);
      std::vector<std::int32_t> targets = {0, -1, static_cast<std::int32_t>(vocabulary - 1),
                                           static_cast<std::int32_t>(vocabulary / 2), 0};
      constexpr double kZ = 0.03;
      std::vector<double> expected, gradient;
      for (std::int64_t i = 0; i < 5; ++i) {
        double sum = 0;
        const float* row = logits.data<float>() + i * vocabulary;
        for (std::int64_t v = 0; v < vocabulary; ++v)
          sum += std::exp(double{row[v]});
        const double lse = std::log(sum);
        const bool counts = targets[static_cast<std::size_t>(i)] >= 0;
        expected.push_back(counts ? lse - row[targets[static_cast<std::size_t>(i)]] + kZ * lse * lse
                                  : 0);
        for (std::int64_t v = 0; v < vocabulary; ++v)
          gradient.push_back(counts ? 2 * (std::exp(row[v] - lse) * (1 + 2 * kZ * lse) -
                                           (v == targets[static_cast<std::size_t>(i)] ? 1 : 0))
                                    : 0);
      }
      const CrossEntropy alone = cross_entropy(logits, targets, kZ, 0);
      CHECK_FALSE(alone.seed.defined());
      const CrossEntropy both = cross_entropy(logits.clone(), targets, kZ, 2);
      for (std::size_t i = 0; i < 5; ++i) {
        CHECK(alone.losses.floats()[i] == Approx(expected[i]).margin(2e-6));
        CHECK(both.losses.floats()[i] == alone.losses.floats()[i]);
      }
      double worst = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i)
        worst = std::max(worst, std::abs(both.seed.floats()[i] - gradient[i]));
      CHECK(worst < 3e-6);
      const std::vector<double> sums = alone.read_sums(std::vector<std::int64_t>{2, 3});
      CHECK(sums[0] == Approx(expected[0]).margin(2e-6));
      CHECK(sums[1] == Approx(expected[2] + expected[3] + expected[4]).margin(6e-6));
    }
    // Far from zero nothing overflows; what is no number stays none.
    const std::vector<std::int32_t> target = {1};
    const std::vector<float> far = {-1e4f, 1e4f, 9999.f}, odd = {0, 1, std::nanf("")};
    CHECK(cross_entropy(Tensor::from(far, {1, 3}), target, 0, 0).losses.floats()[0] ==
          Approx(0.3132617).epsilon(1e-3));
    CHECK(std::isnan(cross_entropy(Tensor::from(odd, {1, 3}), target, 0, 0).losses.floats()[0]));
  });
  const std::vector<std::int32_t> beyond = {3}, two = {0, 0};
  CHECK_THROWS_AS(cross_entropy(noise_tensor({1, 3}, 1), beyond, 0, 0), Error);
  CHECK_THROWS_AS(cross_entropy(noise_tensor({1, 3}, 1), two, 0, 0), Error);
}

TEST_CASE("shares of a vocabulary have the losses of the whole, and their own gradients") {
  each_isa([] {
    constexpr std::int64_t kTokens = 4, kVocabulary = 61;
    constexpr double kZ = 0.03;
    const std::vector<std::int64_t> begins = {0, 1, 30, kVocabulary};
    const std::vector<std::int32_t> targets = {0, 60, -1, 30};
    for (const float spread : {1.f, 1e3f}) {
      const Tensor logits = noise_tensor({kTokens, kVocabulary}, 1);
      for (float& v : logits.floats())
        v *= spread;
      const CrossEntropy whole = cross_entropy(logits.clone(), targets, kZ, 2);
      const auto columns = [&](std::size_t share, const Tensor& of) {
        const std::int64_t width = begins[share + 1] - begins[share];
        const Tensor part({kTokens, width});
        for (std::int64_t i = 0; i < kTokens; ++i)
          std::copy_n(of.data<float>() + i * kVocabulary + begins[share], width,
                      part.data<float>() + i * width);
        return part;
      };
      // First what each share has to say, then what it makes of all.
      const Tensor parts({3 * kTokens, 2});
      VocabularyShare share;
      share.of = kVocabulary;
      for (std::size_t i = 0; i < 3; ++i) {
        share.first = begins[i];
        share.gather.forward = [&](const Tensor& part) {
          std::ranges::copy(part.floats(),
                            parts.floats().begin() + static_cast<std::ptrdiff_t>(i) * 2 * kTokens);
          return parts;
        };
        cross_entropy(columns(i, logits), targets, kZ, 0, share);
      }
      share.gather.forward = [&](const Tensor&) { return parts; };
      for (std::size_t i = 0; i < 3; ++i) {
        share.first = begins[i];
        const CrossEntropy made = cross_entropy(columns(i, logits), targets, kZ, 2, share);
        CHECK(distance(made.losses, whole.losses) < 1e-6);
        CHECK(made.losses.floats()[2] == 0);
        const Tensor expected = columns(i, whole.seed);
        for (std::size_t k = 0; k < expected.floats().size(); ++k)
          CHECK(made.seed.floats()[k] ==
                Approx(expected.floats()[k]).margin(spread > 1 ? 1e-2 : 1e-6));
      }
      // What is no number in one share is none in all.
      parts.floats()[2 * kTokens] = std::nanf("");
      share.first = 0;
      CHECK(
          std::isnan(cross_entropy(columns(0, logits), targets, kZ, 0, share).losses.floats()[0]));
    }
  });
  VocabularyShare share;
  share.of = 4;
  share.first = 2;
  share.gather.forward = [](const Tensor& part) { return part; };
  const std::vector<std::int32_t> one = {1}, beyond = {4};
  CHECK_THROWS_AS(cross_entropy(noise_tensor({1, 3}, 1), one, 0, 0, share), Error);
  CHECK_THROWS_AS(cross_entropy(noise_tensor({1, 2}, 1), beyond, 0, 0, share), Error);
  CHECK_THROWS_AS(cross_entropy(Tensor({1, 0}), one, 0, 0, share), Error);
}

TEST_CASE("YaRN keeps what turns often over the trained frames, and stretches what turns less") {
  // Of 24 numbers time has 8 and so 4 frequencies; all else as without.
  RotaryOptions plain, yarn;
  plain.theta = yarn.theta = 100;
  yarn.yarn_scale = 4;
  yarn.yarn_frames = 16;
  yarn.yarn_betas = {2, 0.25};
  const std::vector<TokenGrid> grids = {{3, 2, 2}};
  const RotaryAngles before = rotary_angles(grids, 24, {1, 1, 1}, plain),
                     after = rotary_angles(grids, 24, {1, 1, 1}, yarn);
  const auto angle = [](const RotaryAngles& angles, std::size_t token, std::size_t i) {
    return std::atan2(angles.sines.floats()[token * 12 + i],
                      angles.cosines.floats()[token * 12 + i]);
  };
  for (std::size_t i = 0; i < 4; ++i) {  // of the first token of frame 1
    const double frequency = std::pow(100.0, -2.0 * static_cast<double>(i) / 8);
    const double turns = 16 * frequency / (2 * M_PI);
    const double kept = std::clamp((turns - 0.25) / 1.75, 0.0, 1.0);
    CHECK(angle(before, 4, i) == Approx(frequency).epsilon(1e-5));
    CHECK(angle(after, 4, i) == Approx(frequency * (kept + (1 - kept) / 4)).epsilon(1e-5));
  }
  CHECK(angle(after, 4, 0) == Approx(1).epsilon(1e-5));              // 2.5 turns: kept
  CHECK(angle(after, 4, 3) == Approx(0.0316228 / 4).epsilon(1e-4));  // 0.08: stretched in full
  for (std::size_t token = 0; token < 12; ++token)
    for (std::size_t i = 4; i < 12; ++i)
      CHECK(angle(after, token, i) == angle(before, token, i));
}
