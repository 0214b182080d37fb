// Shape letters: B samples, S most queries, L most keys, H heads, G key heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_graph.h"

#include <limits>
#include <utility>

namespace vfm::ops {

using namespace graph;

namespace {

// What both graphs have in common.
struct Builder {
  const AttentionShape& shape;
  Graph graph{};
  std::int64_t B = shape.samples, S = shape.most_queries, L = shape.most_keys, H = shape.heads,
               G = shape.key_heads, K = shape.head_dim;

  Edge query_lengths = graph.memory(kQueryLengths, Type::i32, packed(B, 1, 1, 1));
  Edge key_lengths = graph.memory(kKeyLengths, Type::i32, packed(B, 1, 1, 1));
  Edge q_offsets = graph.memory(kQOffsets, Type::i64, packed(B + 1, 1, 1, 1));
  Edge kv_offsets = graph.memory(kKvOffsets, Type::i64, packed(B + 1, 1, 1, 1));
  Edge out_offsets = graph.memory(kOutOffsets, Type::i64, packed(B + 1, 1, 1, 1));
  Edge row_offsets = graph.memory(kRowOffsets, Type::i64, packed(B + 1, 1, 1, 1));

  Layout q_layout = strided(B, H, S, K, shape.q_stride);
  Layout kv_layout = strided(B, G, L, K, shape.kv_stride);
  Layout out_layout = strided(B, H, S, K, H* K);
  Layout scores_layout = packed(B, H, S, L), rows_layout = packed(B, H, S, 1);

  Edge bf16(AttentionId id, const Layout& layout, Edge offsets) {
    return graph.memory(id, Type::bf16, layout, offsets);
  }
  Edge a_row(AttentionId id) {
    return graph.memory(id, Type::f32, strided(B, H, S, 1, H), row_offsets);
  }
  void matmul(Edge a, Edge b, Edge out, Edge rows, Edge columns, Edge depth) {
    Operation product{Op::matmul, a, b, none, out};
    product.rows = rows, product.columns = columns, product.depth = depth;
    graph.add(product);
  }
  Edge inner(Op op, Edge a, Edge b, const Layout& layout, Type type = Type::f32) {
    const Edge out = graph.inner(layout, type);
    graph.add({op, a, b, none, out});
    return out;
  }
  Edge score(Op op, Edge a, Edge b, Type type = Type::f32) {
    return inner(op, a, b, scores_layout, type);
  }
  Edge position(Edge scores, int axis) {
    const Edge out = graph.inner(scores_layout, Type::i32);
    graph.add({Op::position, scores, none, none, out, axis});
    return out;
  }
  // Scores of pairs that do not exist, or must not see each other, become minus infinity.
  Edge keep(Edge scores, Edge where) {
    const Edge out = graph.inner(scores_layout);
    const Edge never = graph.number(-std::numeric_limits<float>::infinity());
    graph.add({Op::select, scores, never, where, out});
    return out;
  }
  Edge mask_padding(Edge scores) {
    const Edge row = position(scores, 2), column = position(scores, 3);
    const Edge is_query = score(Op::less, row, query_lengths, Type::boolean);
    const Edge is_key = score(Op::less, column, key_lengths, Type::boolean);
    return keep(scores, score(Op::both, is_query, is_key, Type::boolean));
  }
  Edge mask_causal(Edge scores) {
    if (!shape.causal) return scores;
    const Edge row = position(scores, 2), column = position(scores, 3);
    return keep(scores, score(Op::greater_equal, row, column, Type::boolean));
  }
  // scale q k^T
  Edge scaled_scores(Edge q, Edge k_transposed, Edge scale) {
    const Edge scores = graph.inner(scores_layout);
    matmul(q, k_transposed, scores, query_lengths, key_lengths, none);
    return score(Op::multiply, scores, scale);
  }
  // dk = dscores^T q, dv = probabilities^T dout. Each head of q makes its own, then those that
  // share a key head are added up.
  void gradient(Edge weights, Edge by, AttentionId heads_id, Edge to) {
    const Edge turned = inner(Op::reshape, weights, none, transposed(scores_layout), Type::bf16);
    if (H == G) return matmul(turned, by, to, key_lengths, none, query_lengths);
    // The offsets of kv are meant times H / G, as the strides are.
    const Layout wide = strided(B, H, L, K, shape.kv_stride * (H / G));
    const Edge heads = bf16(heads_id, wide, kv_offsets);
    matmul(turned, by, heads, key_lengths, none, query_lengths);
    graph.add({Op::sum, heads, none, none, to});
  }
};

}  // namespace

Graph attention_forward_graph(const AttentionShape& shape) {
  Builder b{shape};
  const Edge q = b.bf16(kQ, b.q_layout, b.q_offsets);
  const Edge k = b.bf16(kK, transposed(b.kv_layout), b.kv_offsets);
  const Edge v = b.bf16(kV, b.kv_layout, b.kv_offsets);
  const Edge out = b.bf16(kOut, b.out_layout, b.out_offsets);
  const Edge statistics = b.a_row(kStatistics);

  const Edge scores =
      b.mask_causal(b.mask_padding(b.scaled_scores(q, k, b.graph.number(shape.scale))));
  const Edge top = b.inner(Op::largest, scores, none, b.rows_layout);
  const Edge weights = b.score(Op::exp, b.score(Op::subtract, scores, top), none);
  const Edge sum = b.inner(Op::sum, weights, none, b.rows_layout);
  const Edge log_sum = b.inner(Op::log, sum, none, b.rows_layout);
  b.graph.add({Op::add, top, log_sum, none, statistics});
  const Edge probabilities = b.score(Op::divide, weights, sum, Type::bf16);
  b.matmul(probabilities, v, out, b.query_lengths, none, b.key_lengths);
  return std::move(b.graph);
}

Graph attention_backward_graph(const AttentionShape& shape) {
  Builder b{shape};
  const Edge q = b.bf16(kQ, b.q_layout, b.q_offsets);
  const Edge k = b.bf16(kK, transposed(b.kv_layout), b.kv_offsets);
  const Edge v = b.bf16(kV, transposed(b.kv_layout), b.kv_offsets);
  const Edge out = b.bf16(kOut, b.out_layout, b.out_offsets);
  const Edge dout = b.bf16(kDout, b.out_layout, b.out_offsets);
  const Edge dq = b.bf16(kDq, b.q_layout, b.q_offsets);
  const Edge dk = b.bf16(kDk, b.kv_layout, b.kv_offsets);
  const Edge dv = b.bf16(kDv, b.kv_layout, b.kv_offsets);
  const Edge statistics = b.a_row(kStatistics);
  const Edge scale = b.graph.number(shape.scale);

  // Sums of dout * out over a row. They go through memory, as a kernel of their own makes them.
  const Edge products = b.inner(Op::multiply, dout, out, packed(b.B, b.H, b.S, b.K));
  const Edge sums = b.inner(Op::sum, products, none, b.rows_layout);
  const Edge row_sums = b.a_row(kRowSums);
  b.graph.add({Op::multiply, sums, b.graph.number(1), none, row_sums});

  // Recompute the probabilities from the statistics.
  const Edge scores = b.mask_padding(b.scaled_scores(q, k, scale));
  const Edge logarithms = b.mask_causal(b.score(Op::subtract, scores, statistics));
  const Edge probabilities = b.score(Op::exp, logarithms, none);
  b.gradient(probabilities, dout, kDvHeads, dv);

  // dscores = probabilities * (dout v^T - row sums) * scale
  const Edge dprobabilities = b.graph.inner(b.scores_layout);
  b.matmul(dout, v, dprobabilities, b.query_lengths, b.key_lengths, none);
  const Edge centred = b.score(Op::subtract, dprobabilities, row_sums);
  const Edge weighted = b.score(Op::multiply, centred, probabilities);
  const Edge dscores = b.score(Op::multiply, weighted, scale);
  b.gradient(dscores, q, kDkHeads, dk);

  // dq = dscores k: blocks of keys add to it in f32, in any order. The sums are rows of dq alone,
  // though dq may be columns of a wider matrix.
  const Edge k_again = b.graph.inner(b.kv_layout, Type::bf16, b.kv_offsets);
  b.graph.add({Op::reshape, k, none, none, k_again});
  const Edge dq_sum = b.graph.memory(kDqSum, Type::f32, b.out_layout, b.out_offsets);
  b.matmul(dscores, k_again, dq_sum, b.query_lengths, none, b.key_lengths);
  b.graph.add({Op::copy, dq_sum, none, none, dq});
  return std::move(b.graph);
}

}  // namespace vfm::ops
