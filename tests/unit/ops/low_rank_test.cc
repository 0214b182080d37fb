// Adapters: a product with W and A, B is one with W + scale B A, in values and gradients.
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/low_rank.h"

#include <cstring>

#include "base/error.h"
#include "check.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/pointwise/activations.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

// Rows `first` and on of w plus scale b a, in plain loops.
Tensor formed(const Tensor& w, const std::vector<LowRank>& added) {
  Tensor sum = w.to(DType::f32).clone();
  for (const LowRank& l : added) {
    const Tensor a = l.a.to(DType::f32), b = l.b.to(DType::f32);
    for (std::int64_t o = 0; o < b.size(0); ++o)
      for (std::int64_t i = 0; i < a.size(1); ++i) {
        double dot = 0;
        for (std::int64_t r = 0; r < a.size(0); ++r)
          dot += double{b.floats()[static_cast<std::size_t>(o * a.size(0) + r)]} *
                 a.floats()[static_cast<std::size_t>(r * a.size(1) + i)];
        sum.floats()[static_cast<std::size_t>((l.first + o) * a.size(1) + i)] +=
            static_cast<float>(l.scale * dot);
      }
  }
  return sum;
}

// A weight [11, 7] of three parts, two of which are adapted, with different ranks and scales.
LinearWeight adapted(DType dtype) {
  LinearWeight weight(noise_tensor({11, 7}, 1, dtype));
  weight.added.push_back({noise_tensor({3, 7}, 2, dtype), noise_tensor({4, 3}, 3, dtype), 0, 0.5f});
  weight.added.push_back({noise_tensor({1, 7}, 4, dtype), noise_tensor({5, 1}, 5, dtype), 6, 1.f});
  return weight;
}

}  // namespace

TEST_CASE("low rank: the product is that of the formed weight") {
  each_isa([&] {
    Tape silent(false);
    const Tensor x = noise_tensor({13, 7}, 6);
    const LinearWeight weight = adapted(DType::f32);
    CHECK(distance(linear(silent, x, weight), linear(silent, x, formed(weight.w, weight.added))) <
          1e-6);
    const LinearWeight low = adapted(DType::bf16);
    const Tensor y = linear(silent, x, formed(low.w, low.added));
    const Tensor x16 = x.to(DType::bf16);
    CHECK(distance(linear(silent, x16, low), y) < 2e-2);
    CHECK(distance(linear(silent, x16, low, Tensor(), DType::f32), y) < 2e-2);
  });
}

TEST_CASE("low rank: gradients of A, B and the input are their slopes; the matrix needs none") {
  const Tensor x = noise_tensor({6, 7}, 6);
  const LinearWeight weight = adapted(DType::f32);
  const LowRank &first = weight.added[0], &second = weight.added[1];
  check_gradients({x, first.a, first.b, second.a, second.b},
                  [&](Tape& t) { return linear(t, x, weight); });
  // Also where what comes in wants no gradient, as in a first layer.
  check_gradients({first.a, second.b}, [&](Tape& t) { return linear(t, x, weight); });
}

TEST_CASE("low rank: what is computed again changes no bit") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const LinearWeight weight = adapted(dtype);
    const std::vector<Tensor> leaves = {weight.added[0].a, weight.added[0].b, weight.added[1].a,
                                        weight.added[1].b};
    const Tensor narrow = noise_tensor({9, 7}, 8, dtype), wide = noise_tensor({9, 14}, 9, dtype);
    const Tensor cotangent = noise_tensor({9, 11}, 10);
    using Forward = std::function<Tensor(Tape&)>;
    const std::pair<Forward, Forward> pairs[] = {
        {[&](Tape& t) { return linear(t, activate(t, narrow, ActivationKind::gelu), weight); },
         [&](Tape& t) { return activated_linear(t, narrow, weight, ActivationKind::gelu); }},
        {[&](Tape& t) { return linear(t, swiglu(t, wide), weight); },
         [&](Tape& t) { return swiglu_linear(t, wide, weight, wide.dtype()); }}};
    for (const auto& [plain, recomputed] : pairs) {
      const auto expected = gradients(leaves, cotangent, plain);
      const auto found = gradients(leaves, cotangent, recomputed);
      for (std::size_t i = 0; i < leaves.size(); ++i)
        CHECK(std::memcmp(expected[i].raw(), found[i].raw(), expected[i].bytes()) == 0);
    }
  }
}

TEST_CASE("low rank: parts that do not fit are refused") {
  Tape silent(false);
  const Tensor x = noise_tensor({2, 7}, 1);
  LinearWeight weight(noise_tensor({4, 7}, 2));
  weight.added = {
      {noise_tensor({2, 7}, 3), noise_tensor({4, 2}, 4), 1, 1.f}};  // beyond the last row
  CHECK_THROWS_AS(linear(silent, x, weight), Error);
  weight.added = {{noise_tensor({2, 6}, 3), noise_tensor({4, 2}, 4), 0, 1.f}};
  CHECK_THROWS_AS(linear(silent, x, weight), Error);
  weight.added = {{noise_tensor({2, 7}, 3, DType::bf16), noise_tensor({4, 2}, 4), 0, 1.f}};
  CHECK_THROWS_AS(linear(silent, x, weight), Error);
}
