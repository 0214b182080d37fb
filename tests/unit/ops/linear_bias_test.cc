// The bias of a product: the same whichever product it is, and its gradient.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"
#include "ops/check.h"
#include "ops/matmul/bias.h"
#include "ops/matmul/exchanged_linear.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/cast.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

// Adds in f32, one rounding for each element.
Tensor with_bias_in_a_loop(const Tensor& y, const Tensor& bias) {
  const Tensor wide = y.to(DType::f32).clone();
  for (std::size_t i = 0; i < wide.floats().size(); ++i)
    wide.floats()[i] += bias.floats()[i % bias.floats().size()];
  return wide.to(y.dtype());
}

LinearWeight biased_weight(DType dtype, std::int64_t out, std::int64_t in) {
  LinearWeight weight(noise_tensor({out, in}, 1, dtype));
  weight.added.push_back({noise_tensor({3, in}, 2, dtype), noise_tensor({4, 3}, 3, dtype), 1, .5f});
  weight.bias = noise_tensor({out}, 4);
  return weight;
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.bytes() == b.bytes() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace

TEST_CASE("a bias is added to every row of a product, in f32, and rounded once") {
  Tape silent(false);
  for (const auto& [dtype, out] :
       {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}}) {
    const LinearWeight weight = biased_weight(dtype, 70, 7);
    const Tensor x = noise_tensor({300, 7}, 5, dtype);
    const Tensor plain = linear(silent, x, weight, Tensor(), out);
    CHECK(equal_bytes(linear(silent, x, weight, out), with_bias_in_a_loop(plain, weight.bias)));
  }
  LinearWeight wrong(noise_tensor({5, 7}, 1));
  wrong.bias = noise_tensor({4}, 2);
  CHECK_THROWS_WITH(linear(silent, noise_tensor({3, 7}, 3), wrong),
                    Catch::Contains("bias [4] does not fit"));
}

TEST_CASE("gradients of a biased product are slopes, also where the bias alone is trained") {
  const LinearWeight weight = biased_weight(DType::f32, 11, 7);
  const Tensor x = noise_tensor({13, 7}, 5);
  const auto forward = [&](Tape& t) { return linear(t, x, weight); };
  check_gradients({x, weight.w, weight.bias}, forward);
  check_gradients({weight.bias}, forward);
  check_gradients({weight.bias}, [&](Tape& t) {
    return t.checkpoint(x, {}, [&](Tape& inner, const Tensor& in) {
      return std::vector{activate(inner, linear(inner, in, weight), ActivationKind::gelu)};
    })[0];
  });
}

TEST_CASE("the gradient of a bias is exact enough over many rows, and adds to what there is") {
  constexpr std::int64_t kMany = 300'000;
  const Tensor x = Tensor::zeros({kMany, 1}), bias = Tensor::zeros({2}),
               sum = Tensor::from(std::vector<float>{0, 100}, {2});
  Tape tape;
  tape.watch(bias, sum);
  LinearWeight weight(Tensor::zeros({2, 1}));
  weight.bias = bias;
  const Tensor y = linear(tape, x, weight), dy(y.shape());
  for (float& v : dy.floats())
    v = 0.1f;
  tape.backward(y, dy);
  CHECK(sum.floats()[0] == Approx(0.1 * kMany).epsilon(5e-5));
  CHECK(sum.floats()[1] == Approx(0.1 * kMany + 100).epsilon(5e-5));
}

TEST_CASE("products that compute their input again have the bits of separate ops, bias too") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const LinearWeight weight = biased_weight(dtype, 11, 8);
    const Tensor narrow = noise_tensor({9, 8}, 8, dtype), wide = noise_tensor({9, 16}, 9, dtype),
                 stream = noise_tensor({9, 8}, 10), scale = noise_tensor({8}, 11);
    const std::vector<Tensor> leaves = {
        narrow, wide, stream, scale, weight.w, weight.added[0].a, weight.bias};
    using Forward = std::function<Tensor(Tape&)>;
    const std::pair<Forward, Forward> pairs[] = {
        {[&](Tape& t) { return linear(t, activate(t, narrow, ActivationKind::gelu), weight); },
         [&](Tape& t) { return activated_linear(t, narrow, weight, ActivationKind::gelu); }},
        {[&](Tape& t) { return linear(t, swiglu(t, wide), weight, DType::f32); },
         [&](Tape& t) { return swiglu_linear(t, wide, weight, DType::f32); }},
        {[&](Tape& t) {
           return linear(t, cast(t, rmsnorm(t, stream, scale, 1e-5f), dtype), weight);
         },
         [&](Tape& t) { return rmsnorm_linear(t, stream, scale, 1e-5f, weight); }}};
    for (const auto& [plain, again] : pairs) {
      Tape silent(false);
      const Tensor y = plain(silent);
      CHECK(equal_bytes(y, again(silent)));
      const Tensor cotangent = noise_tensor(y.shape(), 12);
      const auto expected = gradients(leaves, cotangent, plain);
      const auto found = gradients(leaves, cotangent, again);
      for (std::size_t i = 0; i < leaves.size(); ++i)
        CHECK(equal_bytes(found[i], expected[i]));
    }
  }
}
