// SPDX-License-Identifier: Apache-2.0
#include "nn/weight.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "nn/linear.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/linear_fp8.h"
#include "support/noise.h"
#include "tensor/device.h"

using namespace vfm;
using nn::Init;
using nn::Weight;

TEST_CASE("stacked parameters are one matrix and keep their own names, values and gradients") {
  Weight weight({"q", "k"}, {2, 3}, {.seed = 5});
  REQUIRE(weight.parameters().size() == 2);
  nn::Parameter& q = weight.parameters()[0];
  nn::Parameter& k = weight.parameters()[1];
  CHECK(q.name == "q");
  CHECK(k.value.shape() == Shape{2, 3});
  ops::Tape tape;
  const Tensor both = weight.op(tape);
  CHECK(both.shape() == Shape{4, 3});
  k.value.floats()[0] = 42;
  CHECK(both.floats()[6] == 42);
  Tensor gradient({4, 3});
  std::iota(gradient.floats().begin(), gradient.floats().end(), 0.f);
  tape.accumulate(both, gradient);
  tape.accumulate(both, gradient);
  CHECK(q.grad.floats()[5] == 10);
  CHECK(k.grad.floats()[0] == 12);
  nn::zero_gradients({&q, &k});
  CHECK(std::ranges::all_of(k.grad.floats(), [](float v) { return v == 0; }));

  // The name decides, not the company.
  Weight alone({"k"}, {2, 3}, {.decay = false, .seed = 5});
  CHECK(alone.parameters()[0].value.floats()[1] == k.value.floats()[1]);
  CHECK_FALSE(alone.parameters()[0].decay);
}

TEST_CASE("a weight to compute with in bf16 is a split master: no digit of its f32 is lost") {
  Weight weight({"w"}, {1, 2}, {.init = Init::one, .compute = DType::bf16});
  const nn::Parameter& parameter = weight.parameters()[0];
  ops::Tape tape;
  CHECK(parameter.split());
  CHECK(parameter.shape() == Shape{1, 2});
  CHECK(weight.op(tape).dtype() == DType::bf16);
  CHECK(weight.op(tape).to(DType::f32).floats()[0] == 1);
  const std::vector<float> values{3.1415927f, -1.0039063f};
  parameter.write(Tensor::from(values, {1, 2}));
  CHECK(parameter.read().floats()[0] == values[0]);
  CHECK(parameter.read().floats()[1] == values[1]);
  CHECK(weight.op(tape).to(DType::f32).floats()[0] == 3.140625f);
  CHECK(weight.op(tape).to(DType::f32).floats()[1] == -1.0078125f);  // a tie: away from zero
  // Its gradient is the f32 one of the parameter.
  Tensor gradient = Tensor::zeros({1, 2});
  gradient.floats()[1] = 0.1f;
  tape.accumulate(weight.op(tape), gradient);
  CHECK(weight.parameters()[0].grad.floats()[1] == 0.1f);
}

TEST_CASE("an initial value depends on its place alone, in large weights too") {
  Weight weight({"w"}, {300, 700}, {.init = Init::xavier, .seed = 7});
  const Random random(7, Purpose::weight_init, 0, random_key("w"));
  const float bound = std::sqrt(6.f / 1000);
  for (const std::size_t i : {0, 1, 65535, 65536, 65541, 131072, 209999}) {
    float expected = 0;
    random.fill_uniform({&expected, 1}, i);
    CHECK(weight.parameters()[0].value.floats()[i] == (2 * expected - 1) * bound);
  }
}

TEST_CASE("initial values have the promised spread") {
  Weight normal({"n"}, {100, 100}, {.init = Init::normal, .seed = 1});
  double squares = 0;
  for (const float v : normal.parameters()[0].value.floats())
    squares += double{v} * v;
  CHECK(std::sqrt(squares / 10000) == Approx(0.02).epsilon(0.03));
  Weight uniform({"u"}, {100, 50}, {.seed = 1});
  squares = 0;
  for (const float v : uniform.parameters()[0].value.floats())
    squares += double{v} * v;
  CHECK(std::sqrt(squares / 5000) == Approx(0.2 / std::sqrt(3)).epsilon(0.03));
}

TEST_CASE("a weight's copy in FP8 is used while it is kept, and is what the weight was then") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Weight weight({"w"}, {16, 32}, {.compute = dtype, .seed = 3, .of_products = true});
    const nn::Linear layer(weight);
    Tensor x({4, 32});
    std::iota(x.floats().begin(), x.floats().end(), -60.f);
    x = x.to(dtype);
    ops::Tape tape(false), recording;
    const auto values = [](const Tensor& t) {
      const Tensor wide = t.to(DType::f32);
      return std::vector<float>(wide.floats().begin(), wide.floats().end());
    };
    const std::vector<float> plain = values(layer.forward(tape, x));
    CHECK(values(layer.forward(recording, x)) == plain);
    weight.keep_fp8(true);
    const std::vector<float> low = values(layer.forward(tape, x));
    CHECK(weight.in_fp8());
    CHECK(low != plain);
    CHECK(low == values(ops::linear_fp8(tape, x, ops::quantize(weight.op(tape)))));
    CHECK_THROWS_AS(layer.forward(recording, x), Error);
    weight.parameters()[0].write(Tensor::zeros({16, 32}));
    CHECK(values(layer.forward(tape, x)) == low);
    weight.keep_fp8(true);
    CHECK(values(layer.forward(tape, x)) == std::vector<float>(64, 0.f));
    weight.keep_fp8(false);
    CHECK_FALSE(weight.in_fp8());
    CHECK_THROWS_WITH(weight.fp8(), Catch::Contains("'w' has no copy"));
    CHECK_NOTHROW(layer.forward(recording, x));
  }
  Weight table({"t"}, {2, 3}, {});
  table.keep_fp8(true);
  CHECK_FALSE(table.in_fp8());
}

TEST_CASE("a rank's part of a weight is drawn as that part of the whole") {
  const auto init = GENERATE(nn::Init::xavier, nn::Init::normal, nn::Init::fan_in);
  const int dim = GENERATE(0, 1);
  const std::vector<std::string> names{"q", "k"};
  const Shape shape{7, 10};
  nn::WeightOptions options;
  options.init = init;
  options.seed = 5;
  nn::Weight whole(names, shape, options);
  for (const int ranks : {2, 3}) {
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      options.cut = {dim, rank, ranks};
      nn::Weight part(names, shape, options);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const nn::Parameter &p = part.parameters()[i], &all = whole.parameters()[i];
        CHECK(p.placement.global == shape);
        CHECK(p.placement.offset == (dim == 0 ? Shape{next, 0} : Shape{0, next}));
        CHECK_FALSE(p.whole());
        CHECK(all.whole());
        bool equal = true;
        for (std::int64_t row = 0; row < p.shape()[0]; ++row)
          for (std::int64_t column = 0; column < p.shape()[1]; ++column)
            equal &= p.value.data<float>()[row * p.shape()[1] + column] ==
                     all.value.data<float>()[(row + p.placement.offset[0]) * 10 + column +
                                             p.placement.offset[1]];
        CHECK(equal);
      }
      next += part.parameters()[0].shape()[static_cast<std::size_t>(dim)];
    }
    CHECK(next == shape[static_cast<std::size_t>(dim)]);
  }
}

TEST_CASE("a weight in 8 bits is what its rows are rounded to, and takes their memory alone") {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const std::size_t before = cpu_memory().current;
    Weight weight({"q", "k"}, {128, 256},
                  {.compute = compute, .trainable = false, .of_products = true});
    const std::size_t whole = cpu_memory().current - before;
    for (nn::Parameter& p : weight.parameters())
      nn::draw(p, Init::xavier, 3);
    ops::Tape tape(false);
    const Tensor values = weight.matrix(tape).values().clone();
    const Tensor x = noise_tensor({3, 256}, 4).to(compute);
    const ops::QuantizedRows rows =
        ops::quantize_rows(values, ops::largest_of_rows(values), ops::RowFormat::int8);
    const Tensor wanted = ops::linear(tape, x, ops::dequantize_rows(rows, compute));
    const std::size_t others = cpu_memory().current - before - whole;
    for (int i = 0; i < 2; ++i) {  // the second time there is nothing to do
      weight.quantize_rows(ops::RowFormat::int8, nullptr);
      const Tensor y = nn::Linear(weight).forward(tape, x);
      CHECK(std::memcmp(y.raw(), wanted.raw(), y.bytes()) == 0);
    }
    const std::size_t low = cpu_memory().current - before - others;
    CHECK(low * (compute == DType::f32 ? 4 : 2) < whole * 1.05);
    CHECK_THROWS_AS(weight.op(tape), Error);
    CHECK_THROWS_AS(weight.keep_fp8(true), Error);
  }
  // What is no product's alone stays as it is.
  Weight table({"t"}, {2, 3}, {.trainable = false});
  table.quantize_rows(ops::RowFormat::int8, nullptr);
  ops::Tape tape(false);
  CHECK(table.op(tape).shape() == Shape{2, 3});
}
