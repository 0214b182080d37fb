// Products with matrices that are in memory only while an op needs them: the same results, and one
// at a time.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/pointwise/cast.h"
#include "support/noise.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

struct Counts {
  int asked = 0, alive = 0, most = 0;
};

// A copy of the matrix for whoever asks, elsewhere each time, which is spoilt when it is let go.
class Copies final : public MatrixSource {
 public:
  Copies(Tensor kept, Counts& counts) : kept_(std::move(kept)), counts_(counts) {}
  Tensor get() const override {
    ++counts_.asked;
    counts_.most = std::max(counts_.most, ++counts_.alive);
    auto copy = std::make_shared<Tensor>(kept_.clone());
    const void* const data = copy->raw();
    const std::shared_ptr<const void> owner(data, [copy, counts = &counts_](const void*) {
      std::memset(copy->raw(), 0xff, copy->bytes());  // NaN
      --counts->alive;
    });
    return Tensor::borrow(data, copy->shape(), copy->dtype(), owner);
  }

 private:
  const Tensor kept_;
  Counts& counts_;
};

struct Layer {
  Tensor matrix, gradient, a, b, da, db;
  Layer(std::int64_t out, std::int64_t in, DType dtype, std::uint64_t seed)
      : matrix(noise_tensor({out, in}, seed).to(dtype)),
        gradient(Tensor::zeros({out, in})),
        a(noise_tensor({2, in}, seed + 1).to(dtype)),
        b(noise_tensor({out, 2}, seed + 2).to(dtype)),
        da(Tensor::zeros(a.shape())),
        db(Tensor::zeros(b.shape())) {}
};

struct Outcome {
  std::vector<float> y, dx;
  std::vector<std::vector<float>> gradients;
};

Outcome pass(DType dtype, bool again, Counts* counts) {
  std::vector<Layer> layers;
  layers.emplace_back(8, 6, dtype, 10);
  layers.emplace_back(5, 8, dtype, 20);
  layers.emplace_back(12, 5, dtype, 30);
  layers.emplace_back(4, 6, dtype, 40);
  Tape tape;
  std::vector<LinearWeight> weights;
  for (Layer& layer : layers) {
    if (counts == nullptr)
      weights.emplace_back(layer.matrix);
    else
      weights.emplace_back(Tensor::name(layer.matrix.shape(), dtype, Device::cpu),
                           std::make_shared<Copies>(layer.matrix, *counts));
    tape.watch(weights.back().w, layer.gradient);
  }
  Layer& adapted = layers[1];
  weights[1].added.push_back({adapted.a, adapted.b, 0, 0.5f});
  tape.watch(adapted.a, adapted.da);
  tape.watch(adapted.b, adapted.db);
  const Tensor norm = noise_tensor({5}, 3), x = noise_tensor({7, 6}, 4).to(dtype);
  const Tensor dx = Tensor::zeros(x.shape());
  tape.watch(x, dx);
  const auto block = [&](Tape& t, const Tensor& in) {
    const Tensor hidden =
        activated_linear(t, linear(t, in, weights[0]), weights[1], ActivationKind::gelu);
    const Tensor wide = cast(t, hidden, DType::f32);
    const Tensor both = rmsnorm_linear(t, wide, norm, 1e-5f, weights[2]);
    return std::vector{swiglu_linear(t, both, weights[3], dtype)};
  };
  const Tensor y = again ? tape.checkpoint(x, {}, block)[0] : block(tape, x)[0];
  Outcome outcome;
  const auto values = [](const Tensor& t) {
    const Tensor wide = t.to(DType::f32);
    return std::vector<float>(wide.floats().begin(), wide.floats().end());
  };
  outcome.y = values(y);
  tape.backward(y, noise_tensor(y.shape(), 5).to(dtype));
  outcome.dx = values(dx);
  for (const Layer& layer : layers)
    for (const Tensor* t : {&layer.gradient, &layer.da, &layer.db})
      outcome.gradients.push_back(values(*t));
  return outcome;
}

}  // namespace

TEST_CASE("a matrix that comes when it is asked for gives what one that stays gives") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool again : {false, true}) {
      const Outcome expected = pass(dtype, again, nullptr);
      CHECK(std::ranges::any_of(expected.gradients[0], [](float v) { return v != 0; }));
      Counts counts;
      const Outcome made = pass(dtype, again, &counts);
      CHECK(made.y == expected.y);
      CHECK(made.dx == expected.dx);
      CHECK(made.gradients == expected.gradients);
      // Each of the four forward, backward, and where the block is computed again.
      CHECK(counts.asked == (again ? 12 : 8));
      CHECK(counts.most == 1);
      CHECK(counts.alive == 0);
    }
}

TEST_CASE("the name of a matrix is nothing else's while it is used, and has no values") {
  const Tensor a = Tensor::name({3, 4}, DType::f32, Device::cpu),
               b = Tensor::name({3, 4}, DType::f32, Device::cpu);
  CHECK(a.shape() == Shape{3, 4});
  CHECK(a.bytes() == 48);
  CHECK(a.id() != b.id());
  CHECK_THROWS_AS(Tensor::name({0, 4}, DType::f32, Device::cpu), Error);
}
