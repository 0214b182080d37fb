// Each layer against its formula in double; and on ranks of tp and cp, and with results computed
// again in backward, against one rank that keeps all. The ranks are threads.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>

#include "base/error.h"
#include "dist/threads.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "ops/pointwise/row_ranges.h"
#include "support/distance.h"
#include "support/noise.h"

using namespace vfm;

namespace {

constexpr std::int64_t kTokens = 12, kLayerWidth = 16, kHead = 16, kText = 5, kTextWide = 24;
const std::vector<std::int64_t> kLengths = {7, 5}, kTexts = {2, 3};
constexpr nn::AttentionNames kLayerNames{"q", "k", "v", "q_norm", "k_norm", "out"};

struct LayerRanks {
  int tp = 1, cp = 1;
  nn::CpKind kind = nn::CpKind::gather;
  bool recompute = false;
  DType compute = DType::f32;
};

/// What a layer is made and run with.
struct LayerRun {
  nn::WeightMaker& make;
  ops::Tape& tape;
  nn::Stream& x;
  nn::Conditions conditions;
  nn::SelfTokens self;
  nn::TextTokens text;
};
/// Makes a layer, and returns what it makes of the stream, for this rank's tokens.
using MakeAndRun = std::function<Tensor(LayerRun&)>;

struct LayerOutcome {
  Tensor y, dx;
  std::map<std::string, Tensor> values, gradients;  // of whole parameters
};

/// Adds a part of a parameter, or of its gradient, to the whole one.
void add_part(Tensor& whole, const nn::Placement& placement, const Tensor& part) {
  if (!whole.defined()) whole = Tensor::zeros(placement.global);
  const std::int64_t columns = part.size(part.dims() - 1), all = whole.size(whole.dims() - 1);
  const Tensor wide = part.to(DType::f32);
  for (std::int64_t i = 0; i < wide.elements(); ++i) {
    const std::int64_t row = placement.offset.front() * (part.dims() > 1 ? 1 : 0) + i / columns,
                       column = placement.offset.back() + i % columns;
    whole.data<float>()[row * all + column] += wide.data<float>()[i];
  }
}

ops::AttentionPack pack_of(std::vector<std::int64_t> queries, std::vector<std::int64_t> keys,
                           int ranks) {
  ops::AttentionPack pack;
  pack.query_lengths = std::move(queries);
  pack.key_lengths = std::move(keys);
  pack.heads = 4 / ranks;
  pack.key_heads = 2 / std::min(ranks, 2);
  pack.head_dim = kHead;
  return pack;
}

ops::RotaryAngles layer_angles() {
  return ops::rotary_angles({{1, 1, 7}, {1, 1, 5}}, kHead, {1, 1, 1});
}

const nn::HeadShape kLayerHeads{4, 2, kHead};
const Tensor kInput = noise_tensor({kTokens, kLayerWidth}, 1),
             kBefore = noise_tensor({kTokens, kLayerWidth}, 2),
             kEmbedding = noise_tensor({2, kLayerWidth}, 3),
             kShared = noise_tensor({2, 3 * kLayerWidth}, 4),
             kProjection = noise_tensor({2, 6 * kLayerWidth}, 6),
             kWords = noise_tensor({kText, kTextWide}, 5);

LayerOutcome pass_of_rank(dist::World& world, const LayerRanks& ranks, const MakeAndRun& layer) {
  omp_set_num_threads(1);
  const int tp = world.rank() % ranks.tp, cp = world.rank() / ranks.tp;
  std::vector<int> of_tp, of_cp;
  for (int i = 0; i < ranks.tp; ++i)
    of_tp.push_back(cp * ranks.tp + i);
  for (int i = 0; i < ranks.cp; ++i)
    of_cp.push_back(i * ranks.tp + tp);
  const auto tp_group = world.group("tp", of_tp), cp_group = world.group("cp", of_cp);
  nn::NetworkLayout layout;
  if (ranks.tp > 1) layout.tp = tp_group.get();
  if (ranks.cp > 1) layout.cp = cp_group.get();
  layout.cp_kind = ranks.kind;
  const nn::TokenShard shard(kLengths, layout, Device::cpu);
  nn::Pass pass{nn::TokenExchanges(kLayerHeads, layout, shard), ranks.recompute};

  ops::Tape tape, silent(false);
  std::vector<std::int64_t> parts;
  for (std::size_t i = 0; i < kLengths.size(); ++i)
    parts.push_back(shard.sequence[i].count());
  const bool gathers = ranks.kind == nn::CpKind::gather || ranks.cp == 1;
  nn::SelfTokens self{pass, gathers ? pack_of(parts, kLengths, ranks.tp)
                                    : pack_of(kLengths, kLengths, ranks.tp * ranks.cp)};
  const ops::RotaryAngles angles = layer_angles();
  self.angles = {ops::take_ranges(silent, angles.cosines, shard.sequence),
                 ops::take_ranges(silent, angles.sines, shard.sequence)};
  std::vector<std::int32_t> rows;
  for (const ops::RowRange& range : shard.own)
    for (std::int64_t row = range.begin; row < range.end; ++row)
      rows.push_back(row < kLengths[0] ? 0 : 1);

  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.compute = ranks.compute, .seed = 3}, layout};
  const Tensor dx = Tensor::zeros(kInput.shape());
  tape.watch(kInput, dx);
  nn::Stream x{ops::take_ranges(tape, kInput, shard.own)};
  x.add(ops::take_ranges(silent, kBefore, shard.own).to(ranks.compute));
  LayerRun run{make, tape, x,
               {},   self, {pass, kWords.to(ranks.compute), pack_of(parts, kTexts, ranks.tp)}};
  const Tensor ones({2, kLayerWidth});
  std::ranges::fill(ones.floats(), 1.f);
  run.conditions = {kEmbedding, kShared, ones, ops::RowMap(rows, Device::cpu)};
  // The stream's gradient is that of what the layer makes, and of the stream itself.
  const Tensor made = layer(run);
  x.add(made);
  const Tensor sum = x.sum(tape);
  const Tensor y = ops::place_ranges(silent, sum, shard.own, kTokens);
  tape.backward(sum, ops::take_ranges(silent, noise_tensor(kInput.shape(), 9), shard.own));

  LayerOutcome outcome{y, dx, {}, {}};
  for (nn::Weight& weight : weights)
    for (const nn::Parameter& p : weight.parameters()) {
      add_part(outcome.gradients[p.name], p.placement, p.grad);
      if (p.whole() ? world.rank() == 0 : cp == 0)
        add_part(outcome.values[p.name], p.placement, p.read());
    }
  return outcome;
}

void add_to(Tensor& sum, const Tensor& term) {
  if (!sum.defined()) sum = Tensor::zeros(term.shape());
  for (std::int64_t i = 0; i < term.elements(); ++i)
    sum.data<float>()[i] += term.data<float>()[i];
}

LayerOutcome run_layer(const LayerRanks& ranks, const MakeAndRun& layer) {
  std::vector<LayerOutcome> by_rank(static_cast<std::size_t>(ranks.tp * ranks.cp));
  dist::thread_worlds(ranks.tp * ranks.cp, [&](dist::World& world) {
    by_rank[static_cast<std::size_t>(world.rank())] = pass_of_rank(world, ranks, layer);
  });
  LayerOutcome all;  // sums in the order of the ranks
  for (const LayerOutcome& one : by_rank) {
    add_to(all.y, one.y);
    add_to(all.dx, one.dx);
    for (const auto& [name, value] : one.values)
      add_to(all.values[name], value);
    for (const auto& [name, gradient] : one.gradients)
      add_to(all.gradients[name], gradient);
  }
  return all;
}

/// Computed again, a layer has the same bits; on several ranks the same numbers.
LayerOutcome check_layer(const MakeAndRun& layer, std::vector<LayerRanks> others = {}) {
  const LayerOutcome one = run_layer({}, layer);
  others.insert(others.begin(), {{1, 1}, {2, 1}});
  for (const DType compute : {DType::f32, DType::bf16})
    for (LayerRanks ranks : others) {
      INFO(ranks.tp << " x " << ranks.cp << " ranks, " << nn::cp_kind_name(ranks.kind) << ", "
                    << dtype_name(compute));
      ranks.compute = compute;
      const LayerOutcome kept = run_layer(ranks, layer);
      ranks.recompute = true;
      const LayerOutcome again = run_layer(ranks, layer);
      const double most = compute == DType::f32 ? 2e-5 : 6e-2;
      const auto compare = [&](const Tensor& a, const Tensor& b, const Tensor& wanted) {
        CHECK(largest_difference(a.floats(), b.floats()) == 0);
        CHECK(distance(a.floats(), wanted.floats()) < most);
      };
      compare(kept.y, again.y, one.y);
      compare(kept.dx, again.dx, one.dx);
      CHECK(kept.gradients.size() == one.gradients.size());
      for (const auto& [name, gradient] : one.gradients) {
        INFO(name);
        compare(kept.gradients.at(name), again.gradients.at(name), gradient);
      }
    }
  return one;
}

using Doubles = std::vector<std::vector<double>>;

Doubles doubles(const Tensor& t) {
  Doubles rows(static_cast<std::size_t>(t.size(0)));
  for (std::int64_t i = 0; i < t.size(0); ++i)
    rows[static_cast<std::size_t>(i)].assign(t.data<float>() + i * t.size(1),
                                             t.data<float>() + (i + 1) * t.size(1));
  return rows;
}

Doubles times(const Doubles& x, const Tensor& matrix) {
  const Doubles w = doubles(matrix);
  Doubles y;
  for (const auto& row : x) {
    auto& out = y.emplace_back();
    for (const auto& column : w)
      out.push_back(std::inner_product(row.begin(), row.end(), column.begin(), 0.0));
  }
  return y;
}

/// The stream before the layer, with what is pending.
Doubles stream_before() {
  Doubles x = doubles(kInput);
  const Doubles before = doubles(kBefore);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < x[i].size(); ++j)
      x[i][j] += before[i][j];
  return x;
}

std::vector<double> normed_row(std::vector<double> row, bool centred, double epsilon) {
  const auto n = static_cast<double>(row.size());
  const double mean = centred ? std::accumulate(row.begin(), row.end(), 0.0) / n : 0;
  double squares = 0;
  for (double& v : row)
    v -= mean, squares += v * v;
  for (double& v : row)
    v /= std::sqrt(squares / n + epsilon);
  return row;
}

Doubles rms_normed(Doubles x) {
  for (auto& row : x)
    row = normed_row(row, false, 1e-5);
  return x;
}

/// `gate(i, j)` times what the layer makes, and the stream.
template <class Gate>
void check_formula(const LayerOutcome& outcome, const Doubles& made, const Gate& gate) {
  const Doubles x = stream_before();
  std::vector<double> wanted;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < x[i].size(); ++j)
      wanted.push_back(x[i][j] + gate(i, j) * made[i][j]);
  CHECK(distance(outcome.y.floats(), wanted) < 1e-5);
}
void check_formula(const LayerOutcome& outcome, const Doubles& made) {
  check_formula(outcome, made, [](std::size_t, std::size_t) { return 1.0; });
}

double silu_of(double v) {
  return v / (1 + std::exp(-v));
}

nn::AttentionShape attention_shape_of(bool norms) {
  nn::AttentionShape shape{.heads = kLayerHeads, .width = kLayerWidth, .text_width = kTextWide};
  if (norms) shape.norm_epsilon = 1e-5f;
  return shape;
}

/// Attention in double: `positions` are those of self-attention.
Doubles attended(Doubles q, Doubles k, const Doubles& v, const std::vector<std::int64_t>& keys,
                 bool rotated) {
  const ops::RotaryAngles angles = layer_angles();
  for (Doubles* const rows : {&q, &k})
    for (std::size_t i = 0; i < rows->size(); ++i)
      for (std::size_t first = 0; first < (*rows)[i].size(); first += kHead) {
        double* const head = (*rows)[i].data() + first;
        const std::vector<double> normed =
            normed_row(std::vector<double>(head, head + kHead), false, 1e-5);
        for (std::size_t d = 0; d < kHead / 2; ++d) {
          const std::size_t at = i * kHead / 2 + d;
          const double cosine = rotated ? angles.cosines.floats()[at] : 1,
                       sine = rotated ? angles.sines.floats()[at] : 0;
          const double one = normed[d], two = normed[d + kHead / 2];
          head[d] = one * cosine - two * sine;
          head[d + kHead / 2] = two * cosine + one * sine;
        }
      }
  Doubles made(q.size(), std::vector<double>(q[0].size()));
  for (std::size_t i = 0; i < q.size(); ++i)
    for (std::size_t head = 0; head < 4; ++head) {
      const bool second = i >= static_cast<std::size_t>(kLengths[0]);
      const auto begin = static_cast<std::size_t>(second ? keys[0] : 0),
                 end = begin + static_cast<std::size_t>(keys[second ? 1 : 0]);
      const std::size_t of_q = head * kHead, of_k = head / 2 * kHead;
      std::vector<double> weights;
      for (std::size_t j = begin; j < end; ++j)
        weights.push_back(
            std::exp(std::inner_product(q[i].begin() + of_q, q[i].begin() + of_q + kHead,
                                        k[j].begin() + of_k, 0.0) /
                     std::sqrt(double{kHead})));
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::size_t j = begin; j < end; ++j)
        for (std::size_t d = 0; d < kHead; ++d)
          made[i][of_q + d] += weights[j - begin] / sum * v[j][of_k + d];
    }
  return made;
}

}  // namespace

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

TEST_CASE("self-attention is its formula, on ranks of every kind and recomputed") {
  const LayerOutcome one = check_layer(
      [](LayerRun& r) {
        const nn::Norm norm(r.make, "norm", kLayerWidth, 1e-5f);
        const nn::SelfAttention attention(r.make, "a.", kLayerNames, attention_shape_of(true));
        return attention.forward(r.tape, norm.of(r.tape, r.x), r.self);
      },
      {{1, 2, nn::CpKind::gather}, {2, 2, nn::CpKind::gather}, {1, 2, nn::CpKind::all_to_all}});
  const Doubles x = rms_normed(stream_before());
  const auto project = [&](const std::string& name) {
    return times(x, one.values.at("a." + name + ".weight"));
  };
  const Doubles made = attended(project("q"), project("k"), project("v"), kLengths, true);
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
  const Doubles made = attended(times(stream_before(), weight("q")), times(words, weight("k")),
                                times(words, weight("v")), kTexts, false);
  check_formula(one, times(made, weight("out")));
}

TEST_CASE("attention to cached keys is causal attention, token by token") {
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.seed = 3}};
  const nn::SelfAttention attention(make, "a.", kLayerNames, attention_shape_of(true));
  ops::Tape tape(false);
  nn::SelfTokens tokens{{}, pack_of({7}, {7}, 1)};
  tokens.pack.causal = true;
  const ops::RotaryAngles angles = layer_angles();
  tokens.angles = {angles.cosines.rows(0, 7), angles.sines.rows(0, 7)};
  const Tensor x = noise_tensor({7, kLayerWidth}, 1);
  const Tensor all = attention.forward(tape, x, tokens);
  nn::KeyCache cache{Tensor({7, 4 * kHead})};
  for (; cache.at < 7; ++cache.at) {
    const std::int64_t next = cache.at + 1;
    tokens.angles = {angles.cosines.rows(cache.at, next), angles.sines.rows(cache.at, next)};
    const Tensor one = attention.forward(tape, x.rows(cache.at, next), tokens, &cache);
    CHECK(distance(one.floats(), all.rows(cache.at, next).floats()) < 1e-5);
  }
}

TEST_CASE("heads without norms pass as they are, and are not rotated") {
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.seed = 3}};
  const nn::SelfAttention attention(make, "a.", kLayerNames, attention_shape_of(false));
  CHECK(weights.size() == 2);
  ops::Tape tape(false);
  nn::SelfTokens tokens{{}, pack_of(kLengths, kLengths, 1)};
  CHECK(attention.forward(tape, kInput, tokens).shape() == kInput.shape());
  tokens.angles = layer_angles();
  CHECK_THROWS_WITH(attention.forward(tape, kInput, tokens),
                    Catch::Contains("without norms are not rotated"));
}

TEST_CASE("a time embedding is two matrices with SiLU between") {
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.compute = DType::bf16, .seed = 3}};
  const nn::TimeEmbedding embedding(make, "t", kLayerWidth, 3 * kLayerWidth);
  ops::Tape tape(false);
  const Tensor made = embedding.forward(tape, kEmbedding);
  Doubles hidden = times(doubles(kEmbedding), weights[0].parameters()[0].value);
  CHECK(weights[0].parameters()[0].name == "t.linear_1.weight");
  for (auto& row : hidden)
    for (double& v : row)
      v = silu_of(v);
  std::vector<double> wanted;
  for (const auto& row : times(hidden, weights[1].parameters()[0].value))
    wanted.insert(wanted.end(), row.begin(), row.end());
  CHECK(distance(made.floats(), wanted) < 1e-5);
}

TEST_CASE("a linear layer adds biases to its matrices' outputs, in a plain product alone") {
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.seed = 3}};
  const nn::Linear layer(make, {{"a", 2}, {"b", 4}}, kLayerWidth, {.bias = true});
  REQUIRE(weights.size() == 2);
  const nn::Parameter& b = weights[1].parameters()[1];
  CHECK(b.name == "b.bias");
  CHECK(b.shape() == Shape{4});
  CHECK_FALSE(b.decay);
  b.write(noise_tensor({4}, 8));
  ops::Tape tape;
  const Tensor y = layer.forward(tape, kInput), dy = noise_tensor(y.shape(), 9);
  const Doubles products = times(doubles(kInput), weights[0].parameters()[1].value);
  double gradient = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    CHECK(y.floats()[6 * i + 3] == Approx(products[i][1] + b.value.floats()[1]));
    gradient += dy.floats()[6 * i + 3];
  }
  tape.backward(y, dy);
  CHECK(b.grad.floats()[1] == Approx(gradient));
  CHECK_THROWS_WITH(layer.forward(tape, kInput, {.recompute = true}), Catch::Contains("plain"));
}

TEST_CASE("in FP8 the ranks of a layer round as one rank does") {
  const auto output = [](int ranks) {
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
      const nn::Mlp mlp(make, {"up"}, "down", {.width = kLayerWidth, .hidden = 64});
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
  ops::Tape tape(false);
  x.extra = kInput;
  x.settle(tape);
  CHECK_FALSE(x.branch.defined());
  CHECK(x.x.floats()[5] == (kInput.floats()[5] + kBefore.floats()[5]) + kInput.floats()[5]);
  CHECK(x.sum(tape).id() == x.x.id());
}
