// Each layer against its formula in double; and on ranks of tp and cp, and with results computed
// again in backward, against one rank that keeps all. The ranks are threads.
// layers_wide_test.cc has biases, other norms, and rotation of pairs.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <mutex>
#include <numeric>
#include <string>

#include "dist/threads.h"
#include "layer_run.h"
#include "ops/pointwise/row_ranges.h"
#include "support/distance.h"
#include "support/noise.h"

using namespace vfm;

TEST_CASE(
    "a norm with weights and an MLP with SwiGLU are their formulas, on ranks and recomputed") {
  const LayerOutcome one = check_layer([](LayerRun& r) {
    const nn::Norm norm(r.make, "norm", kLayerWidth, 1e-5f);
    const nn::Mlp mlp(r.make, {"gate", "up"}, "down",
                      {.width = kLayerWidth, .hidden = 20, .activation = nn::Activation::swiglu});
    return mlp.forward(r.tape, norm.of(r.tape, r.x), r.self);
  });
  const Doubles normed = rms_normed(stream_before());
  Doubles hidden = times(normed, one.values.at("gate.weight"));
  const Doubles up = times(normed, one.values.at("up.weight"));
  for (std::size_t i = 0; i < hidden.size(); ++i)
    for (std::size_t j = 0; j < hidden[i].size(); ++j)
      hidden[i][j] = silu_of(hidden[i][j]) * up[i][j];
  check_formula(one, times(hidden, one.values.at("down.weight")));
}

TEST_CASE("a modulated norm and an MLP with GELU are their formulas, on ranks and recomputed") {
  const bool centred = GENERATE(true, false);
  const int rank = GENERATE(0, 4);
  const LayerOutcome one = check_layer([&](LayerRun& r) {
    const nn::Modulation modulation =
        rank > 0 ? nn::Modulation(r.make, "low", "high", kLayerWidth, 3, rank)
                 : nn::Modulation(r.make, "high", kLayerWidth, 3);
    const nn::AdaptiveNorm norm(modulation, r.make.options.compute,
                                {.epsilon = 1e-5f, .centred = centred});
    // A modulation begins as zero, and says nothing then.
    nn::draw(r.make.weights.back().parameters()[0], nn::Init::xavier, 7);
    const nn::Mlp mlp(r.make, {"up"}, "down", {.width = kLayerWidth, .hidden = 20});
    return mlp.forward(r.tape, norm.of(r.tape, r.x, r.conditions), r.self);
  });
  Doubles low = doubles(kEmbedding);
  if (rank > 0) low = times(low, one.values.at("low.weight"));
  Doubles modulation = times(low, one.values.at("high.weight"));
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < modulation[i].size(); ++j)
      modulation[i][j] += doubles(kShared)[i][j];
  const auto sample = [](std::size_t token) { return token < 7 ? 0U : 1U; };
  Doubles x = stream_before();
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = normed_row(x[i], centred, 1e-5);
    const std::vector<double>& of_sample = modulation[sample(i)];
    for (std::size_t j = 0; j < kLayerWidth; ++j)
      x[i][j] = x[i][j] * (1 + of_sample[kLayerWidth + j]) + of_sample[j];
  }
  Doubles hidden = times(x, one.values.at("up.weight"));
  for (auto& row : hidden)
    for (double& v : row)
      v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
  check_formula(
      one, times(hidden, one.values.at("down.weight")),
      [&](std::size_t i, std::size_t j) { return modulation[sample(i)][2 * kLayerWidth + j]; });
}

TEST_CASE("an MLP with GELU takes no type for its result") {
  const nn::Activation kind = GENERATE(nn::Activation::gelu, nn::Activation::squared_relu);
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.compute = DType::bf16, .seed = 3}};
  nn::MlpShape shape{.width = kLayerWidth, .hidden = 20, .activation = kind};
  shape.out = DType::f32;
  CHECK_THROWS_WITH(nn::Mlp(make, {"up"}, "down", shape), Catch::Contains("is for SwiGLU"));
}

TEST_CASE("norms that share a table and a projection have the parts of their own") {
  const LayerOutcome one = check_layer([](LayerRun& r) {
    const nn::Modulation table = nn::Modulation::of_table(r.make, "table", kLayerWidth, 6);
    const nn::AdaptiveNorm norm(std::nullopt, r.make.options.compute, {.epsilon = 1e-5f});
    const nn::Linear before(r.make, {{"before", kLayerWidth}}, kLayerWidth);
    r.conditions.shared = kProjection;
    const Tensor modulation = table.forward(r.tape, r.conditions);
    r.x.add(before.forward(r.tape, norm.of(r.x, modulation, 0, r.conditions), r.self));
    const nn::Linear after(r.make, {{"after", kLayerWidth}}, kLayerWidth);
    return after.forward(r.tape, norm.of(r.x, modulation, 1, r.conditions), r.self);
  });
  const Tensor& table = one.values.at("table");
  CHECK(table.shape() == Shape{1, 6, kLayerWidth});
  const Doubles projection = doubles(kProjection);
  const auto part = [&](std::size_t token, std::size_t number, std::size_t column) {
    const std::size_t at = number * kLayerWidth + column;
    return projection[token < 7 ? 0 : 1][at] + double{table.floats()[at]};
  };
  Doubles x = stream_before(), made;
  for (std::size_t norm = 0; norm < 2; ++norm) {
    made = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      made[i] = normed_row(x[i], true, 1e-5);
      for (std::size_t j = 0; j < kLayerWidth; ++j)
        made[i][j] = made[i][j] * (1 + part(i, 3 * norm + 1, j)) + part(i, 3 * norm, j);
    }
    made = times(made, one.values.at(norm == 0 ? "before.weight" : "after.weight"));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < kLayerWidth; ++j)
        x[i][j] += part(i, 3 * norm + 2, j) * made[i][j];
  }
  std::vector<double> wanted;
  for (const auto& row : x)
    wanted.insert(wanted.end(), row.begin(), row.end());
  CHECK(distance(one.y.floats(), wanted) < 1e-5);
}

TEST_CASE("self-attention is its formula, with gather, all_to_all and ring, and recomputed") {
  const LayerOutcome one = check_layer(
      [](LayerRun& r) {
        const nn::Norm norm(r.make, "norm", kLayerWidth, 1e-5f);
        const nn::SelfAttention attention(r.make, "a.", kLayerNames, attention_shape_of(true));
        return attention.forward(r.tape, norm.of(r.tape, r.x), r.self);
      },
      {{1, 2, nn::CpKind::gather},
       {2, 2, nn::CpKind::gather},
       {1, 2, nn::CpKind::all_to_all},
       {1, 2, nn::CpKind::ring},
       {2, 2, nn::CpKind::ring}});
  const Doubles x = rms_normed(stream_before());
  const auto project = [&](const std::string& name) {
    return times(x, one.values.at("a." + name + ".weight"));
  };
  const auto turned = [&](const std::string& name) {
    return rotated_heads(normed_stretches(project(name), kHead, Tensor()), false);
  };
  const Doubles made = attended(turned("q"), turned("k"), project("v"), kLengths);
  check_formula(one, times(made, one.values.at("a.out.weight")));
}

TEST_CASE("cross-attention to a stream without norm is its formula, on ranks and recomputed") {
  const bool kept = GENERATE(false, true);
  const LayerOutcome one = check_layer(
      [&](LayerRun& r) {
        const nn::NoNorm no_norm{r.make.options.compute};
        const nn::CrossAttention attention(r.make, "a.", kLayerNames, attention_shape_of(true));
        const Tensor keys = kept ? attention.keys(r.tape, r.text.text) : Tensor();
        return attention.forward(r.tape, no_norm.of(r.x), r.text, keys);
      },
      {{1, 2}, {2, 2}});
  const auto weight = [&](const std::string& name) {
    return one.values.at("a." + name + ".weight");
  };
  const Doubles words = doubles(kWords);
  const Doubles made =
      attended(normed_stretches(times(stream_before(), weight("q")), kHead, Tensor()),
               normed_stretches(times(words, weight("k")), kHead, Tensor()),
               times(words, weight("v")), kTexts);
  check_formula(one, times(made, weight("out")));
}

TEST_CASE("a time embedding is two matrices with SiLU between") {
  const bool wide = GENERATE(false, true);
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.compute = DType::bf16, .seed = 3}};
  const nn::TimeEmbedding embedding =
      wide ? nn::TimeEmbedding(make, "t", 20, kLayerWidth, {.wave = kLayerWidth, .bias = true})
           : nn::TimeEmbedding(make, "t", kLayerWidth, 3 * kLayerWidth);
  draw_vectors(make);
  std::map<std::string, Tensor> values;
  for (nn::Weight& weight : weights)
    values[weight.parameters()[0].name] = weight.parameters()[0].value;
  CHECK(values.size() == (wide ? 4 : 2));
  ops::Tape tape(false);
  const Tensor made = embedding.forward(tape, kEmbedding);
  Doubles hidden =
      times(doubles(kEmbedding), values["t.linear_1.weight"], values["t.linear_1.bias"]);
  for (auto& row : hidden)
    for (double& v : row)
      v = silu_of(v);
  const Doubles wanted = times(hidden, values["t.linear_2.weight"], values["t.linear_2.bias"]);
  CHECK(distance(made.floats(), joined(wanted)) < 1e-5);
}

TEST_CASE("in FP8 the ranks of a layer round as one rank does") {
  const bool bias = GENERATE(false, true);
  const nn::Activation kind = bias ? nn::Activation::tanh_gelu : nn::Activation::gelu;
  const auto output = [bias, kind](int ranks) {
    Tensor all;
    std::mutex mutex;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      std::vector<int> numbers(static_cast<std::size_t>(ranks));
      std::iota(numbers.begin(), numbers.end(), 0);
      const auto group = world.group("tp", numbers);
      nn::NetworkLayout layout;
      if (ranks > 1) layout.tp = group.get();
      const nn::TokenShard shard(kLengths, layout, Device::cpu);
      const nn::Pass pass{nn::TokenExchanges(kLayerHeads, layout, shard)};
      std::deque<nn::Weight> weights;
      nn::WeightMaker make{weights, {.compute = DType::bf16, .seed = 3}, layout};
      const nn::Norm norm(make, "norm", kLayerWidth, 1e-5f);
      const nn::Mlp mlp(make, {"up"}, "down", {.width = kLayerWidth, .hidden = 64, .bias = bias});
      draw_vectors(make);
      for (const nn::Weight& weight : weights)
        weight.keep_fp8(true, ranks > 1 ? group.get() : nullptr);
      ops::Tape silent(false);
      nn::Stream x{ops::take_ranges(silent, kInput, shard.own)};
      const Tensor y = mlp.forward(silent, norm.of(silent, x), pass).to(DType::f32);
      const Tensor placed = ops::place_ranges(silent, y, shard.own, kTokens);
      const std::lock_guard lock(mutex);
      if (!all.defined()) all = Tensor::zeros(placed.shape());
      for (std::int64_t i = 0; i < placed.elements(); ++i)
        all.data<float>()[i] += placed.data<float>()[i];
    });
    return all;
  };
  const Tensor one = output(1);
  CHECK(distance(output(2).floats(), one.floats()) < 5e-3);  // a rounding to bf16
}

TEST_CASE("a stream takes one branch at a time") {
  nn::Stream x{kInput};
  x.add(kBefore);
  CHECK_THROWS_WITH(x.add(kBefore), Catch::Contains("no norm has added"));
  CHECK_THROWS_WITH(x.pending({}, {}), Catch::Contains("Conditions::ones is not set"));
  ops::Tape tape(false);
  x.extra = kInput;
  x.settle(tape);
  CHECK_FALSE(x.branch.defined());
  CHECK(x.x.floats()[5] == (kInput.floats()[5] + kBefore.floats()[5]) + kInput.floats()[5]);
  CHECK(x.sum(tape).id() == x.x.id());
}
