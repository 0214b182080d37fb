// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_fp8_graph.h"

#include <cmath>
#include <utility>

#include "base/format.h"

namespace vfm::ops {

using namespace graph;

std::string text_of(const Fp8AttentionShape& shape) {
  std::string text =
      vfm::format("{} samples of {} queries and {} keys, {} heads of {}", shape.samples,
                  shape.queries, shape.keys, shape.heads, shape.head_dim);
  if (shape.key_heads != shape.heads) text += vfm::format(", {} key heads", shape.key_heads);
  return text;
}

Graph attention_fp8_graph(const Fp8AttentionShape& shape) {
  const std::int64_t B = shape.samples, S = shape.queries, L = shape.keys, H = shape.heads,
                     G = shape.key_heads, K = shape.head_dim;
  const Layout scores_layout = packed(B, H, S, L), rows_layout = packed(B, H, S, 1),
               out_layout = strided(B, H, S, K, H * K), one = packed(1, 1, 1, 1);
  const Layout kv_layout = strided(B, G, L, K, shape.kv_stride);
  Graph g;
  const auto scalar = [&](Fp8AttentionId id) { return g.memory(id, Type::f32, one); };
  const auto inner = [&](Op op, Edge a, Edge b, const Layout& layout, Type type = Type::f32) {
    const Edge out = g.inner(layout, type);
    g.add({op, a, b, none, out});
    return out;
  };
  const auto score = [&](Op op, Edge a, Edge b, Type type = Type::f32) {
    return inner(op, a, b, scores_layout, type);
  };
  const Edge q = g.memory(kCodesQ, Type::f8e4m3, strided(B, H, S, K, shape.q_stride));
  const Edge k = g.memory(kCodesK, Type::f8e4m3, transposed(kv_layout));
  const Edge v = g.memory(kCodesV, Type::f8e4m3, kv_layout);
  const Edge out = g.memory(kFp8Out, shape.wide ? Type::bf16 : Type::f8e4m3, out_layout);

  Edge scores = score(Op::matmul, q, k);
  scores = score(Op::multiply, scores, g.number(1.f / std::sqrt(static_cast<float>(K))));
  scores = score(Op::multiply, scores, scalar(kDescaleQ));
  scores = score(Op::multiply, scores, scalar(kDescaleK));
  const Edge top = inner(Op::largest, scores, none, rows_layout);
  const Edge weights = score(Op::exp, score(Op::subtract, scores, top), none);
  const Edge sum = inner(Op::sum, weights, none, rows_layout);
  // Statistics that nobody reads; cuDNN knows the pattern with them.
  inner(Op::add, top, inner(Op::log, sum, none, rows_layout), rows_layout);
  const Edge divided = score(Op::divide, weights, sum);
  g.add({Op::largest_magnitude, divided, none, none, scalar(kLargestWeight)});
  const Edge codes = score(Op::multiply, divided, g.number(kFp8WeightScale), Type::f8e4m3);
  Edge sums = inner(Op::matmul, codes, v, out_layout);
  sums = inner(Op::multiply, sums, g.number(1 / kFp8WeightScale), out_layout);
  sums = inner(Op::multiply, sums, scalar(kDescaleV), out_layout);
  const Edge scale_out = shape.wide ? g.number(1) : scalar(kScaleOut);
  g.add({Op::multiply, sums, scale_out, none, out});
  g.add({Op::largest_magnitude, sums, none, none, scalar(kLargestOut)});
  return g;
}

}  // namespace vfm::ops
