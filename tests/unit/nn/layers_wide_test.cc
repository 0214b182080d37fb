// Layers with biases, norms over all heads, rotation of pairs and layer norms: against formulas in
// double, on ranks, and with results computed again in backward.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "dist/threads.h"
#include "layer_run.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/join.h"
#include "support/distance.h"
#include "support/noise.h"

using namespace vfm;

namespace {

enum class WideNorms { none, by_head, over_heads };

nn::AttentionShape wide_shape(WideNorms norms) {
  nn::AttentionShape shape = attention_shape_of(norms != WideNorms::none);
  shape.over_heads = norms == WideNorms::over_heads;
  shape.pairs = shape.bias = shape.out_bias = true;
  return shape;
}

/// What a layer's parameters are after a prefix, such as "a.q.weight" after "a.".
struct Values {
  const LayerOutcome& outcome;
  std::string prefix = "";
  Tensor of(const std::string& name) const {
    const auto found = outcome.values.find(prefix + name);
    return found == outcome.values.end() ? Tensor() : found->second;
  }
  Doubles product(const Doubles& x, const std::string& name) const {
    return times(x, of(name + ".weight"), of(name + ".bias"));
  }
};

Doubles wide_heads(const Values& values, const Doubles& x, const std::string& name,
                   WideNorms norms) {
  Doubles heads = values.product(x, name);
  if (norms == WideNorms::none) return heads;
  const std::size_t width = norms == WideNorms::by_head ? kHead : heads[0].size();
  return normed_stretches(std::move(heads), width, values.of(name + "_norm.weight"));
}

/// Attention of x to itself, or to the text.
Doubles wide_attention(const Values& values, const Doubles& x, WideNorms norms, bool to_text) {
  const Doubles seen = to_text ? doubles(kWords) : x;
  Doubles q = wide_heads(values, x, "q", norms), k = wide_heads(values, seen, "k", norms);
  if (!to_text) q = rotated_heads(q, true), k = rotated_heads(k, true);
  const Doubles made = attended(q, k, values.product(seen, "v"), to_text ? kTexts : kLengths);
  return values.product(made, "out");
}

Doubles layer_normed(Doubles x, const Values& values, const std::string& name) {
  const Tensor weight = values.of(name + ".weight"), bias = values.of(name + ".bias");
  for (auto& row : x) {
    row = normed_row(row, true, 1e-5);
    for (std::size_t j = 0; j < row.size(); ++j)
      row[j] = row[j] * double{weight.floats()[j]} + double{bias.floats()[j]};
  }
  return x;
}

Doubles tanh_gelu(Doubles x) {
  for (auto& row : x)
    for (double& v : row)
      v *= 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  return x;
}

Doubles erf_gelu(Doubles x) {
  for (auto& row : x)
    for (double& v : row)
      v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
  return x;
}

Doubles squared_relu(Doubles x) {
  for (auto& row : x)
    for (double& v : row)
      v *= std::max(v, 0.0);
  return x;
}

}  // namespace

TEST_CASE("an MLP and a layer norm with biases are their formulas, on ranks and recomputed") {
  const nn::Activation activation = GENERATE(nn::Activation::gelu, nn::Activation::tanh_gelu,
                                             nn::Activation::squared_relu, nn::Activation::swiglu);
  const bool gated = activation == nn::Activation::swiglu;
  const LayerOutcome one = check_layer(
      [&](LayerRun& r) {
        const nn::Norm norm(r.make, "norm", kLayerWidth, 1e-5f, true);
        const std::vector<std::string> up =
            gated ? std::vector<std::string>{"gate", "up"} : std::vector<std::string>{"up"};
        const nn::Mlp mlp(
            r.make, up, "down",
            {.width = kLayerWidth, .hidden = 20, .activation = activation, .bias = true});
        draw_vectors(r.make);
        return mlp.forward(r.tape, norm.of(r.tape, r.x), r.self);
      },
      {{.tp = 2, .tp_chunks = 3}});
  const Values values{one};
  const Doubles normed = layer_normed(stream_before(), values, "norm");
  Doubles hidden = values.product(normed, "up");
  if (gated) {
    const Doubles gates = values.product(normed, "gate");
    for (std::size_t i = 0; i < hidden.size(); ++i)
      for (std::size_t j = 0; j < hidden[i].size(); ++j)
        hidden[i][j] *= silu_of(gates[i][j]);
  } else {
    hidden = activation == nn::Activation::gelu        ? erf_gelu(hidden)
             : activation == nn::Activation::tanh_gelu ? tanh_gelu(hidden)
                                                       : squared_relu(hidden);
  }
  check_formula(one, values.product(hidden, "down"));
}

TEST_CASE("self-attention with biases and pairs is its formula, on ranks and recomputed") {
  const WideNorms norms = GENERATE(WideNorms::none, WideNorms::by_head, WideNorms::over_heads);
  const LayerOutcome one = check_layer(
      [&](LayerRun& r) {
        const nn::NoNorm no_norm{r.make.options.compute};
        const nn::SelfAttention attention(r.make, "a.", kLayerNames, wide_shape(norms));
        draw_vectors(r.make);
        return attention.forward(r.tape, no_norm.of(r.x), r.self);
      },
      {{1, 2, nn::CpKind::gather}, {2, 2, nn::CpKind::gather}, {1, 2, nn::CpKind::all_to_all}});
  CHECK(one.values.contains("a.q_norm.weight") == (norms != WideNorms::none));
  if (norms == WideNorms::over_heads)
    CHECK(one.values.at("a.k_norm.weight").shape() == Shape{2 * kHead});
  check_formula(one, wide_attention({one, "a."}, stream_before(), norms, false));
}

TEST_CASE("cross-attention with norms over all heads is its formula, on ranks and recomputed") {
  const bool kept = GENERATE(false, true);
  const LayerOutcome one = check_layer(
      [&](LayerRun& r) {
        const nn::NoNorm no_norm{r.make.options.compute};
        const nn::CrossAttention attention(r.make, "a.", kLayerNames,
                                           wide_shape(WideNorms::over_heads));
        draw_vectors(r.make);
        const Tensor keys = kept ? attention.keys(r.tape, r.text.text) : Tensor();
        return attention.forward(r.tape, no_norm.of(r.x), r.text, keys);
      },
      {{1, 2}, {2, 2}});
  check_formula(one, wide_attention({one, "a."}, stream_before(), WideNorms::over_heads, true));
}

TEST_CASE("attention to cached keys is causal attention, token by token") {
  const std::optional<WideNorms> norms =
      GENERATE(std::optional<WideNorms>(), WideNorms::none, WideNorms::over_heads);
  const bool rotated = GENERATE(true, false);
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.seed = 3}};
  const nn::SelfAttention attention(make, "a.", kLayerNames,
                                    norms ? wide_shape(*norms) : attention_shape_of(true));
  draw_vectors(make);
  ops::Tape tape(false);
  nn::SelfTokens tokens{{}, pack_of({7}, {7}, 1)};
  tokens.pack.causal = true;
  const ops::RotaryAngles angles = layer_angles();
  const auto angles_of = [&](std::int64_t begin, std::int64_t end) {
    return rotated
               ? ops::RotaryAngles{angles.cosines.rows(begin, end), angles.sines.rows(begin, end)}
               : ops::RotaryAngles();
  };
  tokens.angles = angles_of(0, 7);
  const Tensor x = noise_tensor({7, kLayerWidth}, 1);
  const Tensor all = attention.forward(tape, x, tokens);
  nn::KeyCache cache{Tensor({7, 4 * kHead})};
  for (; cache.at < 7; ++cache.at) {
    const std::int64_t next = cache.at + 1;
    tokens.angles = angles_of(cache.at, next);
    const Tensor one = attention.forward(tape, x.rows(cache.at, next), tokens, &cache);
    CHECK(distance(one.floats(), all.rows(cache.at, next).floats()) < 1e-5);
  }
}

// As in Wan's transformer: six parts of a table and a projection, of which two norms have three
// each, and a layer norm with weights between. A sample's tokens have rows of their own, as if its
// first frame were given.
TEST_CASE("a block with a modulation by token is its formula, on ranks and recomputed") {
  const auto row_of = [](std::int64_t token) { return token % 7 < 3 ? 0 : 1; };
  const LayerOutcome one = check_layer(
      [&](LayerRun& r) {
        const DType compute = r.make.options.compute;
        const auto table = nn::Modulation::of_table(r.make, "table", kLayerWidth, 6);
        const nn::AdaptiveNorm norm(std::nullopt, compute, {.epsilon = 1e-5f});
        const nn::AttentionShape shape = wide_shape(WideNorms::over_heads);
        const nn::SelfAttention self(r.make, "self.", kLayerNames, shape);
        const nn::Norm middle(r.make, "norm", kLayerWidth, 1e-5f, true);
        const nn::CrossAttention cross(r.make, "cross.", kLayerNames, shape);
        const nn::Mlp mlp(r.make, {"up"}, "down",
                          {.width = kLayerWidth,
                           .hidden = 20,
                           .activation = nn::Activation::tanh_gelu,
                           .bias = true});
        draw_vectors(r.make);
        nn::Conditions c = r.conditions;
        std::vector<std::int32_t> rows;
        for (const std::int64_t token : r.tokens)
          rows.push_back(row_of(token));
        c.rows = ops::RowMap(rows, Device::cpu);
        c.shared = kProjection;
        const Tensor parts = table.forward(r.tape, c);
        r.x.add(self.forward(r.tape, norm.of(r.x, parts, 0, c), r.self));
        r.x.add(cross.forward(r.tape, middle.of(r.tape, r.x), r.text));
        return mlp.forward(r.tape, norm.of(r.x, parts, 1, c), r.self);
      },
      {{1, 2}, {2, 2}});
  const Tensor& table = one.values.at("table");
  const Doubles projection = doubles(kProjection);
  const auto part = [&](std::size_t token, std::size_t number, std::size_t column) {
    const std::size_t at = number * kLayerWidth + column;
    const auto row = static_cast<std::size_t>(row_of(static_cast<std::int64_t>(token)));
    return projection[row][at] + double{table.floats()[at]};
  };
  Doubles x = stream_before();
  const auto modulated = [&](std::size_t norm) {
    Doubles made = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      made[i] = normed_row(x[i], true, 1e-5);
      for (std::size_t j = 0; j < kLayerWidth; ++j)
        made[i][j] = made[i][j] * (1 + part(i, 3 * norm + 1, j)) + part(i, 3 * norm, j);
    }
    return made;
  };
  const auto add = [&](const Doubles& made, std::optional<std::size_t> norm) {
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < kLayerWidth; ++j)
        x[i][j] += (norm ? part(i, 3 * *norm + 2, j) : 1.0) * made[i][j];
  };
  const Values values{one};
  add(wide_attention({one, "self."}, modulated(0), WideNorms::over_heads, false), 0);
  add(wide_attention({one, "cross."}, layer_normed(x, values, "norm"), WideNorms::over_heads, true),
      std::nullopt);
  add(values.product(tanh_gelu(values.product(modulated(1), "up")), "down"), 1);
  CHECK(distance(one.y.floats(), joined(x)) < 1e-5);
}

// As in a U-ViT: a later block begins with a product of the stream and of an earlier one.
TEST_CASE("a stream that is joined with an earlier one is its formula, on ranks and recomputed") {
  const LayerOutcome one = check_layer([](LayerRun& r) {
    const DType compute = r.make.options.compute;
    const nn::Linear join(r.make, {{"join", kLayerWidth}}, 2 * kLayerWidth,
                          {.bias = true, .out = DType::f32});
    const nn::Norm norm(r.make, "norm", kLayerWidth, 1e-5f);
    const nn::Linear after(r.make, {{"after", kLayerWidth}}, kLayerWidth, {.bias = true});
    draw_vectors(r.make);
    const Tensor skip = r.x.x;
    r.x.settle(r.tape);
    const Tensor both = ops::join_columns(r.tape, {r.x.x, skip});
    r.x.x = join.forward(r.tape, ops::cast(r.tape, both, compute), r.self);
    return after.forward(r.tape, norm.of(r.tape, r.x), r.self);
  });
  const Values values{one};
  const Doubles skip = doubles(kInput);
  Doubles x = stream_before();
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i].insert(x[i].end(), skip[i].begin(), skip[i].end());
  x = values.product(x, "join");
  const Doubles normed = normed_stretches(x, kLayerWidth, values.of("norm.weight"));
  const Doubles made = values.product(normed, "after");
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < kLayerWidth; ++j)
      x[i][j] += made[i][j];
  CHECK(distance(one.y.floats(), joined(x)) < 1e-5);
}

TEST_CASE("in FP8 and in 8 bits a bias is added as it is, once for all ranks") {
  const bool low = GENERATE(true, false);
  const nn::Divided divided =
      GENERATE(nn::Divided::nothing, nn::Divided::outputs, nn::Divided::inputs);
  struct OfRank {
    Tensor without, with, bias;
    std::int64_t own_rows = 0;
  };
  std::vector<OfRank> by_rank(2);
  dist::thread_worlds(2, [&](dist::World& world) {
    omp_set_num_threads(1);
    const auto number = static_cast<std::size_t>(world.rank());
    OfRank& result = by_rank[number];
    const auto group = world.group("tp", {0, 1});
    nn::NetworkLayout layout;
    layout.tp = group.get();
    const nn::TokenShard shard(kLengths, layout, Device::cpu);
    const nn::Pass pass{nn::TokenExchanges(kLayerHeads, layout, shard)};
    result.own_rows = shard.tp_rows[number];
    const bool inputs = divided == nn::Divided::inputs;
    const Tensor x = noise_tensor({inputs ? kTokens : result.own_rows, inputs ? 16 : 32}, number);
    for (const bool bias : {false, true}) {
      std::deque<nn::Weight> weights;
      nn::WeightMaker make{weights, {.seed = 3}, layout};
      const nn::Linear layer(make, {{"a", 32}, {"b", 64}}, 32, {.divided = divided, .bias = bias});
      draw_vectors(make);
      for (nn::Weight& weight : weights)
        if (low)
          weight.keep_fp8(true, group.get());
        else
          weight.quantize_rows(ops::RowFormat::int8, group.get());
      ops::Tape silent(false);
      (bias ? result.with : result.without) = layer.forward(silent, x, pass);
      if (bias) result.bias = weights.back().op(silent);
    }
  });
  for (const OfRank& rank : by_rank) {
    const std::int64_t rows = divided == nn::Divided::outputs ? kTokens : rank.own_rows;
    const std::int64_t columns = divided == nn::Divided::outputs ? 48 : 96;
    REQUIRE(rank.with.shape() == Shape{rows, columns});
    REQUIRE(rank.bias.shape() == Shape{columns});
    std::vector<float> wanted;
    for (const float v : rank.without.floats())
      wanted.push_back(v + rank.bias.floats()[wanted.size() % static_cast<std::size_t>(columns)]);
    CHECK(largest_difference(rank.with.floats(), wanted) == 0);
  }
}

TEST_CASE("a matrix that is made already gets a bias of its name") {
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.seed = 3}};
  nn::Weight& matrix = make.matrix({"embed.proj.weight"}, 6, kLayerWidth);
  const nn::Linear layer(make, matrix);
  REQUIRE(weights.size() == 2);
  const nn::Parameter& bias = weights[1].parameters()[0];
  CHECK(bias.name == "embed.proj.bias");
  CHECK_FALSE(bias.decay);
  draw_vectors(make);
  ops::Tape tape;
  const Tensor y = layer.forward(tape, kInput), dy = noise_tensor(y.shape(), 9);
  const Doubles wanted = times(doubles(kInput), weights[0].parameters()[0].value, bias.value);
  CHECK(distance(y.floats(), joined(wanted)) < 1e-5);
  tape.backward(y, dy);
  for (std::size_t j = 0; j < 6; ++j) {
    double sum = 0;
    for (const auto& row : doubles(dy))
      sum += row[j];
    CHECK(bias.grad.floats()[j] == Approx(sum));
  }
}
