// What stands between the convolutions of a video network, each against its formula in double, and
// its gradients against slopes, on every instruction set.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "ops/attention/video_attention.h"
#include "ops/check.h"
#include "ops/conv/haar.h"
#include "ops/conv/resample.h"
#include "ops/norm/frame_norm.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

Tensor normed(const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu) {
  const Tensor y(x.shape());
  const std::size_t frames = x.size(0), n = x.elements() / frames, c = x.size(3);
  for (std::size_t t = 0; t < frames; ++t) {
    const auto in = x.floats().subspan(t * n, n);
    double mean = 0, variance = 0;
    for (const float v : in)
      mean += v / static_cast<double>(n);
    for (const float v : in)
      variance += (v - mean) * (v - mean) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double z = (in[i] - mean) / std::sqrt(variance + 1e-6) * weight.floats()[i % c] +
                       bias.floats()[i % c];
      y.floats()[t * n + i] = static_cast<float>(silu ? z / (1 + std::exp(-z)) : z);
    }
  }
  return y;
}

// softmax(q k^T / sqrt(C)) v for one query, over the keys given.
std::vector<double> attend(std::span<const float> q, const std::vector<std::span<const float>>& k,
                           const std::vector<std::span<const float>>& v) {
  std::vector<double> p(k.size()), out(q.size());
  double sum = 0;
  for (std::size_t j = 0; j < k.size(); ++j) {
    double score = 0;
    for (std::size_t i = 0; i < q.size(); ++i)
      score += double{q[i]} * k[j][i];
    p[j] = std::exp(score / std::sqrt(static_cast<double>(q.size())));
    sum += p[j];
  }
  for (std::size_t j = 0; j < k.size(); ++j)
    for (std::size_t i = 0; i < q.size(); ++i)
      out[i] += p[j] / sum * v[j][i];
  return out;
}

std::span<const float> row(const Tensor& x, std::int64_t i) {
  return x.floats().subspan(static_cast<std::size_t>(i * x.size(-1)),
                            static_cast<std::size_t>(x.size(-1)));
}

}  // namespace

TEST_CASE("trap 2: group norm is over each frame alone, not over time") {
  const Tensor x = noise_tensor({3, 5, 7, 19}, 1), weight = noise_tensor({19}, 2),
               bias = noise_tensor({19}, 3);
  for (float& v : x.rows(1, 2).floats())
    v = 50 * v + 1000;  // a frame that would drown the others
  each_isa([&] {
    Tape silent(false);
    for (const bool silu : {false, true})
      CHECK(distance(frame_norm(silent, x, weight, bias, 1e-6f, silu),
                     normed(x, weight, bias, silu)) < 3e-5);
    const Tensor plain = noise_tensor(x.shape(), 5);
    CHECK(distance(frame_norm(silent, plain.to(DType::bf16), weight, bias, 1e-6f, true),
                   normed(plain, weight, bias, true)) < 1e-2);
  });
}

TEST_CASE("moments of parts are the moments of the frame") {
  const Tensor x = noise_tensor({1, 6, 4, 8}, 1);
  for (float& v : x.floats())
    v += 100;
  const Tensor whole = frame_moments(x);
  const Tensor a = frame_moments(x.reshape({6, 1, 4, 8}).rows(0, 2).reshape({1, 2, 4, 8}));
  const Tensor b = frame_moments(x.reshape({6, 1, 4, 8}).rows(2, 6).reshape({1, 4, 4, 8}));
  const Tensor both = combine_moments({a, b}, {2, 4});
  CHECK(std::abs(both.floats()[0] - whole.floats()[0]) < 1e-5);
  CHECK(std::abs(both.floats()[1] - whole.floats()[1]) < 1e-5);
}

TEST_CASE("gradients of the norm") {
  const Tensor x = noise_tensor({2, 3, 5, 18}, 1), weight = noise_tensor({18}, 2),
               bias = noise_tensor({18}, 3);
  each_isa([&] {
    for (const bool silu : {false, true})
      check_gradients({x, weight, bias},
                      [&](Tape& t) { return frame_norm(t, x, weight, bias, 1e-6f, silu); });
  });
}

TEST_CASE("halving and doubling") {
  const Tensor x = noise_tensor({5, 4, 6, 17}, 1);
  const auto at = [](const Tensor& v, std::int64_t t, std::int64_t r, std::int64_t c) {
    return v.floats()[((t * v.size(1) + r) * v.size(2) + c) * 17 + 3];
  };
  each_isa([&] {
    Tape silent(false);
    const Tensor small = pool_space(silent, x), large = repeat_space(silent, x);
    CHECK(at(small, 2, 1, 2) ==
          Approx((at(x, 2, 2, 4) + at(x, 2, 2, 5) + at(x, 2, 3, 4) + at(x, 2, 3, 5)) / 4));
    CHECK(at(large, 2, 5, 7) == at(x, 2, 2, 3));
    const Tensor slow = pool_time(silent, x);
    REQUIRE(slow.size(0) == 2);
    CHECK(at(slow, 1, 2, 2) == Approx((at(x, 3, 2, 2) + at(x, 4, 2, 2)) / 2));
    const Tensor fast = repeat_time(silent, x, true, {2, {}});
    REQUIRE(fast.size(0) == 2 + 9);
    CHECK(at(fast, 0, 1, 1) == at(x, 0, 1, 1));
    CHECK(at(fast, 2, 1, 1) == at(x, 0, 1, 1));
    CHECK(at(fast, 3, 1, 1) == at(x, 1, 1, 1));
    CHECK(at(fast, 4, 1, 1) == at(x, 1, 1, 1));
    CHECK(repeat_time(silent, x, false, {}).size(0) == 10);
    check_gradients({x}, [&](Tape& t) { return pool_space(t, x); });
    check_gradients({x}, [&](Tape& t) { return repeat_space(t, x); });
    check_gradients({x}, [&](Tape& t) { return pool_time(t, x); });
    check_gradients({x}, [&](Tape& t) { return repeat_time(t, x, true, {2, {}}); });
    check_gradients({x}, [&](Tape& t) { return repeat_time(t, x, false, {}); });
  });
  Tape silent(false);
  CHECK_THROWS_AS(pool_space(silent, noise_tensor({1, 3, 4, 2}, 1)), Error);
  CHECK_THROWS_AS(pool_time(silent, noise_tensor({4, 2, 2, 2}, 1)), Error);
}

TEST_CASE("trap 3: the order and the scale of the Haar bands") {
  Tape silent(false);
  // One patch of 2: pixel (a, b, c) in time, row, column is 2^(4 a + 2 b + c).
  std::vector<float> pixels;
  for (int i = 0; i < 8; ++i)
    pixels.push_back(static_cast<float>(1 << i));
  const Tensor x = Tensor::from(pixels, {2, 2, 2, 1});
  const Tensor bands = haar_analysis(silent, x, 2, false, DType::f32);
  REQUIRE(bands.shape() == Shape{1, 1, 1, 8});
  for (int band = 0; band < 8; ++band) {
    double expected = 0;
    for (int i = 0; i < 8; ++i)
      expected += (std::popcount(static_cast<unsigned>(band & i)) % 2 ? -1 : 1) * pixels[i] / 8;
    CHECK(bands.floats()[band] == Approx(expected));
  }
  // Two levels: the band of the second is slowest, the colour fastest. A flat colour is all in the
  // low band of the low band.
  const Tensor flat({4, 4, 4, 3});
  for (std::size_t i = 0; i < flat.floats().size(); ++i)
    flat.floats()[i] = static_cast<float>(i % 3 + 1);
  const Tensor low = haar_analysis(silent, flat, 4, false, DType::f32);
  for (std::size_t i = 0; i < 192; ++i)
    CHECK(low.floats()[i] == (i < 3 ? static_cast<float>(i + 1) : 0.f));
  // Fast changes from column to column are in band 1 of the first level, low in the second.
  for (std::size_t i = 0; i < flat.floats().size(); ++i)
    flat.floats()[i] = i / 3 % 2 ? -1.f : 1.f;
  const Tensor high = haar_analysis(silent, flat, 4, false, DType::f32);
  for (std::size_t i = 0; i < 192; ++i)
    CHECK(high.floats()[i] == (i / 3 == 1 ? 1.f : 0.f));
}

TEST_CASE("patches are exact, and the first frame stands alone") {
  Tape silent(false);
  for (const int patch : {2, 4}) {
    const Tensor x = noise_tensor({1 + 2 * patch, 2 * patch, 3 * patch, 3}, 1);
    const Tensor bands = haar_analysis(silent, x, patch, true, DType::f32);
    CHECK(bands.shape() == Shape{3, 2, 3, 3 * patch * patch * patch});
    CHECK(distance(haar_synthesis(silent, bands, patch, true), x) < 1e-6);
    const Tensor rest = x.rows(1, x.size(0)).clone();
    CHECK(distance(haar_analysis(silent, rest, patch, false, DType::f32), bands.rows(1, 3)) == 0);
    CHECK(distance(haar_synthesis(silent, bands.rows(1, 3).clone(), patch, false), rest) < 1e-6);
    check_gradients({x}, [&](Tape& t) { return haar_analysis(t, x, patch, true, DType::f32); });
    const Tensor b = noise_tensor(bands.shape(), 2);
    check_gradients({b}, [&](Tape& t) { return haar_synthesis(t, b, patch, true); });
    check_gradients({b}, [&](Tape& t) { return haar_synthesis(t, b, patch, false); });
  }
  CHECK_THROWS_AS(haar_analysis(silent, noise_tensor({4, 4, 4, 3}, 1), 4, true, DType::f32), Error);
}

TEST_CASE("attention within a frame") {
  const Tensor q = noise_tensor({2, 3, 5, 24}, 1), k = noise_tensor({2, 7, 5, 24}, 2),
               v = noise_tensor({2, 7, 5, 24}, 3);
  each_isa([&] {
    Tape silent(false);
    const Tensor out = frame_attention(silent, q, k, v);
    const Tensor expected(q.shape());
    for (std::int64_t i = 0; i < 30; ++i) {
      std::vector<std::span<const float>> keys, values;
      for (std::int64_t j = 0; j < 35; ++j) {
        keys.push_back(row(k, i / 15 * 35 + j));
        values.push_back(row(v, i / 15 * 35 + j));
      }
      const std::vector<double> one = attend(row(q, i), keys, values);
      std::copy(one.begin(), one.end(), expected.floats().begin() + i * 24);
    }
    CHECK(distance(out, expected) < 1e-5);
    CHECK(distance(frame_attention(silent, q.to(DType::bf16), k.to(DType::bf16), v.to(DType::bf16)),
                   expected) < 2e-2);
    check_gradients({q, k, v}, [&](Tape& t) { return frame_attention(t, q, k, v); });
  });
}

TEST_CASE("attention along time sees a frame and those before it, in one piece or several") {
  const Tensor q = noise_tensor({5, 3, 2, 21}, 1), k = noise_tensor({5, 3, 2, 21}, 2),
               v = noise_tensor({5, 3, 2, 21}, 3);
  each_isa([&] {
    Tape silent(false);
    const Tensor out = time_attention(silent, q, {{k}, {v}});
    const Tensor expected(q.shape());
    for (std::int64_t i = 0; i < 30; ++i) {
      std::vector<std::span<const float>> keys, values;
      for (std::int64_t t = 0; t <= i / 6; ++t) {
        keys.push_back(row(k, t * 6 + i % 6));
        values.push_back(row(v, t * 6 + i % 6));
      }
      const std::vector<double> one = attend(row(q, i), keys, values);
      std::copy(one.begin(), one.end(), expected.floats().begin() + i * 21);
    }
    CHECK(distance(out, expected) < 1e-5);
    const Tensor later = time_attention(
        silent, q.rows(3, 5), {{k.rows(0, 2), k.rows(2, 5)}, {v.rows(0, 4), v.rows(4, 5)}});
    CHECK(distance(later, out.rows(3, 5)) == 0);
    CHECK(distance(
              time_attention(silent, q.to(DType::bf16), {{k.to(DType::bf16)}, {v.to(DType::bf16)}}),
              expected) < 2e-2);
    check_gradients({q, k, v}, [&](Tape& t) { return time_attention(t, q, {{k}, {v}}); });
  });
}
