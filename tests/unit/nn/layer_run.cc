// SPDX-License-Identifier: Apache-2.0
#include "layer_run.h"

#include <omp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "dist/threads.h"
#include "ops/pointwise/row_ranges.h"
#include "support/distance.h"
#include "support/noise.h"

namespace vfm {

const Tensor kInput = noise_tensor({kTokens, kLayerWidth}, 1),
             kBefore = noise_tensor({kTokens, kLayerWidth}, 2),
             kEmbedding = noise_tensor({2, kLayerWidth}, 3),
             kShared = noise_tensor({2, 3 * kLayerWidth}, 4),
             kProjection = noise_tensor({2, 6 * kLayerWidth}, 6),
             kWords = noise_tensor({kText, kTextWide}, 5);

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

namespace {

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
  layout.tp_chunks = ranks.tp_chunks;
  const nn::TokenShard shard(kLengths, layout, Device::cpu);
  nn::Pass pass{nn::TokenExchanges(kLayerHeads, layout, shard), ranks.recompute};

  ops::Tape tape, silent(false);
  std::vector<std::int64_t> parts;
  for (std::size_t i = 0; i < kLengths.size(); ++i)
    parts.push_back(shard.sequence[i].count());
  nn::SelfTokens self{
      pass, pack_of(layout.deals_heads() ? kLengths : parts, kLengths, layout.heads_ranks())};
  const ops::RotaryAngles angles = layer_angles();
  self.angles = {ops::take_ranges(silent, angles.cosines, shard.sequence),
                 ops::take_ranges(silent, angles.sines, shard.sequence)};
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> tokens;
  for (const ops::RowRange& range : shard.own)
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      tokens.push_back(row);
      rows.push_back(row < kLengths[0] ? 0 : 1);
    }

  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {.compute = ranks.compute, .seed = 3}, layout};
  const Tensor dx = Tensor::zeros(kInput.shape());
  tape.watch(kInput, dx);
  nn::Stream x{ops::take_ranges(tape, kInput, shard.own)};
  x.add(ops::take_ranges(silent, kBefore, shard.own).to(ranks.compute));
  LayerRun run{make,  tape, x,
               {},    self, {pass, kWords.to(ranks.compute), pack_of(parts, kTexts, ranks.tp)},
               tokens};
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

}  // namespace

void draw_vectors(const nn::WeightMaker& make) {
  for (nn::Weight& weight : make.weights)
    for (const nn::Parameter& p : weight.parameters())
      if (p.shape().size() == 1) nn::draw(p, nn::Init::fan_in, 7);
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

LayerOutcome check_layer(const MakeAndRun& layer, std::vector<LayerRanks> others) {
  const LayerOutcome one = run_layer({}, layer);
  others.insert(others.begin(), {{1, 1}, {2, 1}});
  for (const DType compute : {DType::f32, DType::bf16})
    for (LayerRanks ranks : others) {
      INFO(ranks.tp << " x " << ranks.cp << " ranks, " << nn::cp_kind_name(ranks.kind) << ", "
                    << ranks.tp_chunks << " chunks, " << dtype_name(compute));
      ranks.compute = compute;
      const LayerOutcome kept = run_layer(ranks, layer);
      ranks.recompute = true;
      const LayerOutcome again = run_layer(ranks, layer);
      const double most = compute == DType::f32 ? 2e-5 : 6e-2;
      const auto compare = [&](const Tensor& a, const Tensor& b, const Tensor& wanted,
                               double times = 1) {
        CHECK(largest_difference(a.floats(), b.floats()) == 0);
        CHECK(distance(a.floats(), wanted.floats()) < times * most);
      };
      compare(kept.y, again.y, one.y);
      compare(kept.dx, again.dx, one.dx);
      CHECK(kept.gradients.size() == one.gradients.size());
      for (const auto& [name, gradient] : one.gradients) {
        INFO(name);
        // What a bias adds to all keys alike nearly cancels in softmax, so little of it is left.
        const double times = name == "cross.k.bias" ? 4 : 1;
        compare(kept.gradients.at(name), again.gradients.at(name), gradient, times);
      }
    }
  return one;
}

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

Doubles times(const Doubles& x, const Tensor& matrix, const Tensor& bias) {
  Doubles y = times(x, matrix);
  for (auto& row : y)
    for (std::size_t j = 0; j < row.size() && bias.defined(); ++j)
      row[j] += double{bias.floats()[j]};
  return y;
}

std::vector<double> joined(const Doubles& rows) {
  std::vector<double> all;
  for (const auto& row : rows)
    all.insert(all.end(), row.begin(), row.end());
  return all;
}

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

void check_formula(const LayerOutcome& outcome, const Doubles& made,
                   const std::function<double(std::size_t, std::size_t)>& gate) {
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

Doubles normed_stretches(Doubles x, std::size_t width, const Tensor& weight) {
  for (auto& row : x)
    for (std::size_t first = 0; first < row.size(); first += width) {
      double* const some = row.data() + first;
      const std::vector<double> normed =
          normed_row(std::vector<double>(some, some + width), false, 1e-5);
      for (std::size_t d = 0; d < width; ++d)
        some[d] = normed[d] * (weight.defined() ? double{weight.floats()[d]} : 1.0);
    }
  return x;
}

Doubles rotated_heads(Doubles x, bool pairs) {
  const ops::RotaryAngles angles = layer_angles();
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t first = 0; first < x[i].size(); first += kHead)
      for (std::size_t d = 0; d < kHead / 2; ++d) {
        double& one = x[i][first + (pairs ? 2 * d : d)];
        double& two = x[i][first + (pairs ? 2 * d + 1 : d + kHead / 2)];
        const std::size_t at = i * kHead / 2 + d;
        const double cosine = angles.cosines.floats()[at], sine = angles.sines.floats()[at];
        const double a = one, b = two;
        one = a * cosine - b * sine;
        two = b * cosine + a * sine;
      }
  return x;
}

Doubles attended(const Doubles& q, const Doubles& k, const Doubles& v,
                 const std::vector<std::int64_t>& keys) {
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

}  // namespace vfm
