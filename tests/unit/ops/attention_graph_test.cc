// The graphs that cuDNN gets, computed here operation by operation in double, against attention on
// the CPU: rounded-up shapes, ragged memory, masks and gradients are right, whoever runs them.
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "base/float8.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_fp8_graph.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/check.h"
#include "ops/matmul/fp8_scale.h"

using namespace vfm;
using namespace vfm::ops;
using namespace vfm::ops::graph;

namespace {

using Numbers = std::vector<double>;
using At = std::array<std::int64_t, 4>;

// Runs a graph. Ragged memory has rows up to the next sample's begin: beyond them reads give zero,
// and nothing is written.
class Interpreter {
 public:
  Interpreter(const Graph& graph, std::map<std::int64_t, Numbers>& memory)
      : graph_(graph), memory_(memory), inner_(graph.tensors().size()) {
    for (const Operation& operation : graph.operations())
      run(operation);
  }

 private:
  static std::size_t size(const Layout& l) {
    return static_cast<std::size_t>(l.dims[0] * l.dims[1] * l.dims[2] * l.dims[3]);
  }
  template <class F>
  static void each(const Layout& l, const F& f) {
    At i{};
    for (i[0] = 0; i[0] < l.dims[0]; ++i[0])
      for (i[1] = 0; i[1] < l.dims[1]; ++i[1])
        for (i[2] = 0; i[2] < l.dims[2]; ++i[2])
          for (i[3] = 0; i[3] < l.dims[3]; ++i[3])
            f(i);
  }
  const Layout& layout(Edge e) const { return graph_.at(e).layout; }

  // Null where a ragged tensor has no such row.
  double* place(Edge e, const At& i) {
    const TensorOfGraph& t = graph_.at(e);
    if (t.place == Place::inner) {
      Numbers& values = inner_[static_cast<std::size_t>(e)];
      values.resize(size(t.layout), std::nan(""));
      const Layout l =
          packed(t.layout.dims[0], t.layout.dims[1], t.layout.dims[2], t.layout.dims[3]);
      return &values[static_cast<std::size_t>(i[0] * l.strides[0] + i[1] * l.strides[1] +
                                              i[2] * l.strides[2] + i[3])];
    }
    Numbers& values = memory_.at(t.id);
    std::int64_t at = i[0] * t.layout.strides[0];
    if (t.ragged != none) {
      const Numbers& offsets = memory_.at(graph_.at(t.ragged).id);
      const bool turned = t.layout.strides[3] != 1;
      const std::int64_t row = turned ? i[3] : i[2], stride = t.layout.strides[turned ? 3 : 2];
      // Heads that share a key head: the offsets are those of the narrower matrix.
      const std::int64_t times =
          t.id == kDkHeads || t.id == kDvHeads ? stride / layout_of(kDk).strides[2] : 1;
      at = times * static_cast<std::int64_t>(offsets[static_cast<std::size_t>(i[0])]);
      const std::int64_t end =
          times * static_cast<std::int64_t>(offsets[static_cast<std::size_t>(i[0]) + 1]);
      if (at + row * stride >= end) return nullptr;
    }
    for (std::size_t d = 1; d < 4; ++d)
      at += i[d] * t.layout.strides[d];
    if (at >= static_cast<std::int64_t>(values.size())) FAIL("beyond memory " << t.id);
    return &values[static_cast<std::size_t>(at)];
  }
  const Layout& layout_of(std::int64_t id) const {
    return std::ranges::find(graph_.tensors(), id, &TensorOfGraph::id)->layout;
  }
  double get(Edge e, At i) {
    if (graph_.at(e).place == Place::number) return graph_.at(e).number;
    for (std::size_t d = 0; d < 4; ++d)
      i[d] = layout(e).dims[d] == 1 ? 0 : i[d];
    const double* p = place(e, i);
    return p == nullptr ? 0 : *p;
  }
  void put(Edge e, const At& i, double value) {
    if (graph_.at(e).type == Type::f8e4m3)
      value = f8e4m3_to_float(float_to_f8e4m3(static_cast<float>(value)));
    if (double* p = place(e, i)) *p = value;
  }
  std::int64_t length(Edge e, std::int64_t sample, std::int64_t whole) {
    return e == none ? whole : static_cast<std::int64_t>(get(e, {sample, 0, 0, 0}));
  }

  void matmul(const Operation& o) {
    const Layout& l = layout(o.out);
    const std::int64_t a_group = l.dims[1] / layout(o.a).dims[1],
                       b_group = l.dims[1] / layout(o.b).dims[1];
    each(l, [&](const At& i) {
      if (i[2] >= length(o.rows, i[0], l.dims[2])) return;
      if (i[3] >= length(o.columns, i[0], l.dims[3])) return;
      const std::int64_t depth = length(o.depth, i[0], layout(o.a).dims[3]);
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum +=
            get(o.a, {i[0], i[1] / a_group, i[2], k}) * get(o.b, {i[0], i[1] / b_group, k, i[3]});
      put(o.out, i, sum);
    });
  }

  void reduce(const Operation& o) {
    const Layout &from = layout(o.a), &to = layout(o.out);
    At times{};
    for (std::size_t d = 0; d < 4; ++d)
      times[d] = from.dims[d] / to.dims[d];
    each(to, [&](const At& i) {
      double result = o.op == Op::sum ? 0 : -HUGE_VAL;
      each({times, {}}, [&](const At& j) {
        double x = get(o.a, {i[0] * times[0] + j[0], i[1] * times[1] + j[1], i[2] * times[2] + j[2],
                             i[3] * times[3] + j[3]});
        if (o.op == Op::largest_magnitude) x = std::abs(x);
        result = o.op == Op::sum ? result + x : std::max(result, x);
      });
      put(o.out, i, result);
    });
  }

  double pointwise(const Operation& o, const At& i) {
    if (o.op == Op::position) return static_cast<double>(i[static_cast<std::size_t>(o.axis)]);
    const double a = get(o.a, i), b = o.b == none ? 0 : get(o.b, i);
    switch (o.op) {
      case Op::add:
        return a + b;
      case Op::subtract:
        return a - b;
      case Op::multiply:
        return a * b;
      case Op::divide:
        return a / b;
      case Op::less:
        return a < b;
      case Op::greater_equal:
        return a >= b;
      case Op::both:
        return a != 0 && b != 0;
      case Op::exp:
        return std::exp(a);
      case Op::log:
        return std::log(a);
      case Op::copy:
        return a;
      case Op::select:
        return get(o.c, i) != 0 ? a : b;
      default:
        FAIL("no pointwise operation");
    }
    return 0;
  }

  void run(const Operation& o) {
    if (o.op == Op::matmul) return matmul(o);
    if (o.op == Op::sum || o.op == Op::largest || o.op == Op::largest_magnitude) return reduce(o);
    each(layout(o.out), [&](const At& i) {
      put(o.out, i, o.op == Op::reshape ? get(o.a, source(o, i)) : pointwise(o, i));
    });
  }
  // Transposed, as all reshapes of these graphs are.
  At source(const Operation& o, const At& i) {
    if (layout(o.a).strides != transposed(layout(o.out)).strides) FAIL("not transposed");
    return {i[0], i[1], i[3], i[2]};
  }

  const Graph& graph_;
  std::map<std::int64_t, Numbers>& memory_;
  std::vector<Numbers> inner_;
};

Numbers numbers(const Tensor& t, std::int64_t from = 0) {
  return {t.floats().begin() + from, t.floats().end()};
}

template <class T>
Numbers numbers(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t n : lengths)
    starts.push_back(starts.back() + n);
  return starts;
}

// The largest difference in columns of a matrix, in units of the largest element.
double apart(const Numbers& a, std::int64_t a_stride, const Tensor& b, std::int64_t column,
             std::int64_t width) {
  double worst = 0, largest = 1e-30;
  for (std::int64_t row = 0; row < b.size(0); ++row)
    for (std::int64_t i = 0; i < width; ++i) {
      const double x = a[static_cast<std::size_t>(row * a_stride + i)];
      const double y = b.floats()[static_cast<std::size_t>(row * b.size(1) + column + i)];
      worst = std::isnan(x) ? 1e30 : std::max(worst, std::abs(x - y));
      largest = std::max(largest, std::abs(y));
    }
  return worst / largest;
}

// The graphs' call for a pack, with memory of its own.
struct GraphCall {
  AttentionArgs args;
  std::vector<std::int64_t> query_starts, key_starts;
  std::map<std::int64_t, Numbers> memory;
  std::int64_t qw = 0, kw = 0;
  bool fill_up = true;

  // The keys begin at column `k_at` of kv.
  GraphCall(const AttentionPack& pack, const Tensor& q, const Tensor& kv, std::int64_t k_at,
            const Tensor& dout)
      : query_starts(starts_of(pack.query_lengths)), key_starts(starts_of(pack.key_lengths)) {
    qw = std::int64_t{pack.heads} * pack.head_dim;
    kw = std::int64_t{pack.key_heads} * pack.head_dim;
    args.causal = pack.causal;
    args.heads = pack.heads, args.key_heads = pack.key_heads, args.head_dim = pack.head_dim;
    args.scale = 1.f / std::sqrt(static_cast<float>(pack.head_dim));
    args.samples = static_cast<std::int64_t>(pack.query_lengths.size());
    args.query_starts = query_starts.data(), args.key_starts = key_starts.data();
    args.q_stride = q.size(1), args.kv_stride = kv.size(1);
    const auto room = [](std::int64_t n) { return Numbers(static_cast<std::size_t>(n), 7e7); };
    const std::int64_t queries = q.size(0), keys = kv.size(0), group = pack.heads / pack.key_heads;
    memory = {
        {kQ, numbers(q)},
        {kK, numbers(kv, k_at)},
        {kV, numbers(kv, k_at + kw)},
        {kOut, room(queries * qw)},
        {kStatistics, room(queries * pack.heads)},
        {kDout, numbers(dout)},
        {kDq, room(queries * args.q_stride)},
        {kDk, room(keys * args.kv_stride)},
        {kDv, room(keys * args.kv_stride)},
        {kRowSums, room(queries * pack.heads)},
        {kDqSum, room(queries * qw)},
        {kDkHeads, room(keys * args.kv_stride * group)},
        {kDvHeads, room(keys * args.kv_stride * group)},
    };
  }
  GraphCall(const GraphCall&) = delete;

  void run(Graph (*graph)(const AttentionShape&)) {
    for (const AttentionPart& part : attention_parts(args, fill_up)) {
      const auto of_queries = part.starts(query_starts.data()),
                 of_keys = part.starts(key_starts.data());
      const std::int64_t samples = part.shape.samples;
      memory[kQueryLengths] = numbers(padded_lengths(of_queries, samples));
      memory[kKeyLengths] = numbers(padded_lengths(of_keys, samples));
      memory[kQOffsets] = numbers(ragged_offsets(of_queries, samples, args.q_stride));
      memory[kKvOffsets] = numbers(ragged_offsets(of_keys, samples, args.kv_stride));
      memory[kOutOffsets] = numbers(ragged_offsets(of_queries, samples, qw));
      memory[kRowOffsets] = numbers(ragged_offsets(of_queries, samples, args.heads));
      Interpreter(graph(part.shape), memory);
    }
  }

  // Zeros in rows of samples without keys, which no graph writes.
  void zero_others() {
    for (std::int64_t s = 0; s < args.samples; ++s)
      for (std::int64_t row = query_starts[static_cast<std::size_t>(s)];
           row < query_starts[static_cast<std::size_t>(s) + 1] && !attends(args, s); ++row)
        for (const auto& [id, width] : {std::pair{kOut, qw}, {kDq, args.q_stride}})
          for (std::int64_t i = 0; i < width; ++i) {
            double& at = memory[id][static_cast<std::size_t>(row * width + i)];
            CHECK(at == 7e7);
            at = 0;
          }
  }
};

void compare(const AttentionPack& pack, bool self, bool fill_up = true) {
  const std::int64_t queries = starts_of(pack.query_lengths).back(),
                     keys = starts_of(pack.key_lengths).back();
  const std::int64_t qw = std::int64_t{pack.heads} * pack.head_dim,
                     kw = std::int64_t{pack.key_heads} * pack.head_dim, k_at = self ? qw : 0;
  const Tensor q = noise_tensor({queries, self ? qw + 2 * kw : qw}, 1);
  const Tensor kv = self ? q : noise_tensor({keys, 2 * kw}, 2);
  const Tensor dout = noise_tensor({queries, qw}, 3);

  Tape tape;
  const Tensor dq = Tensor::zeros(q.shape()), dkv = self ? dq : Tensor::zeros(kv.shape());
  tape.watch(q, dq);
  if (!self) tape.watch(kv, dkv);
  const Tensor out =
      (self ? self_attention(tape, q, pack) : cross_attention(tape, q, kv, pack)).clone();
  tape.backward(self ? self_attention(tape, q, pack) : cross_attention(tape, q, kv, pack),
                dout.clone());

  GraphCall call(pack, q, kv, k_at, dout);
  call.fill_up = fill_up;
  call.run(attention_forward_graph);
  call.run(attention_backward_graph);
  call.zero_others();
  CHECK(apart(call.memory[kOut], qw, out, 0, qw) < 1e-5);
  CHECK(apart(call.memory[kDq], q.size(1), dq, 0, qw) < 1e-5);
  CHECK(apart(call.memory[kDk], kv.size(1), dkv, k_at, kw) < 1e-5);
  CHECK(apart(call.memory[kDv], kv.size(1), dkv, k_at + kw, kw) < 1e-5);
  // Columns that belong to others stay as they were.
  if (self) CHECK(call.memory[kDq][static_cast<std::size_t>(qw)] == 7e7);
}

// Keys in two parts, each by a graph of its own: the second part has the sample's last keys.
void compare_parts(const AttentionPack& whole, const std::vector<std::int64_t>& second) {
  AttentionPack packs[2] = {whole, whole};
  for (std::size_t s = 0; s < second.size(); ++s)
    packs[0].key_lengths[s] -= second[s], packs[1].key_lengths[s] = second[s];
  const std::int64_t queries = starts_of(whole.query_lengths).back(),
                     qw = std::int64_t{whole.heads} * whole.head_dim,
                     kw = std::int64_t{whole.key_heads} * whole.head_dim;
  const auto keys = starts_of(whole.key_lengths);
  const Tensor q = noise_tensor({queries, qw}, 1), kv = noise_tensor({keys.back(), 2 * kw}, 2),
               dout = noise_tensor({queries, qw}, 3);
  // Copies between the rows of a part and those of the whole.
  const auto each_run = [&](int p, const auto& f) {
    std::int64_t at = 0;
    for (std::size_t s = 0; s < second.size(); ++s) {
      const std::int64_t n = packs[p].key_lengths[s],
                         from = keys[s] + (p == 0 ? 0 : packs[0].key_lengths[s]);
      f(from, at, n);
      at += n;
    }
  };
  Tape tape;
  const Tensor dq = Tensor::zeros(q.shape()), dkv = Tensor::zeros(kv.shape());
  tape.watch(q, dq);
  tape.watch(kv, dkv);
  const Tensor out = cross_attention(tape, q, kv, whole);
  const Tensor expected = out.clone();
  tape.backward(out, dout.clone());

  std::vector<std::unique_ptr<GraphCall>> calls;
  for (int p = 0; p < 2; ++p) {
    const Tensor part({starts_of(packs[p].key_lengths).back(), 2 * kw});
    each_run(p, [&](std::int64_t from, std::int64_t at, std::int64_t n) {
      copy(kv.rows(from, from + n), part.rows(at, at + n));
    });
    calls.push_back(std::make_unique<GraphCall>(packs[p], q, part, 0, dout));
    calls.back()->run(attention_forward_graph);
  }
  // Merged by the statistics, and the whole's are what backward of each part takes.
  Numbers sum(static_cast<std::size_t>(queries * qw)), logarithms;
  for (std::int64_t s = 0; s < static_cast<std::int64_t>(second.size()); ++s)
    for (std::int64_t i = 0; i < whole.query_lengths[static_cast<std::size_t>(s)] * whole.heads;
         ++i) {
      const std::size_t at = logarithms.size();
      double total = 0;
      for (const auto& call : calls)
        if (attends(call->args, s)) total += std::exp(call->memory[kStatistics][at]);
      logarithms.push_back(std::log(total));
      for (const auto& call : calls)
        for (std::size_t d = at * whole.head_dim; d < (at + 1) * whole.head_dim; ++d)
          if (attends(call->args, s))
            sum[d] += std::exp(call->memory[kStatistics][at]) / total * call->memory[kOut][d];
    }
  CHECK(apart(sum, qw, expected, 0, qw) < 1e-5);
  Numbers dq_sum(sum.size());
  for (int p = 0; p < 2; ++p) {
    GraphCall& call = *calls[static_cast<std::size_t>(p)];
    call.zero_others();
    call.memory[kOut] = sum, call.memory[kStatistics] = logarithms;
    call.run(attention_backward_graph);
    std::ranges::transform(dq_sum, call.memory[kDq], dq_sum.begin(), std::plus());
    each_run(p, [&](std::int64_t from, std::int64_t at, std::int64_t n) {
      if (n == 0) return;
      const auto begin = [&](AttentionId id) { return call.memory[id].begin() + at * 2 * kw; };
      const Numbers dk(begin(kDk), begin(kDk) + n * 2 * kw),
          dv(begin(kDv), begin(kDv) + n * 2 * kw);
      CHECK(apart(dk, 2 * kw, dkv.rows(from, from + n), 0, kw) < 1e-5);
      CHECK(apart(dv, 2 * kw, dkv.rows(from, from + n), kw, kw) < 1e-5);
    });
  }
  CHECK(apart(dq_sum, qw, dq, 0, qw) < 1e-5);
}

}  // namespace

TEST_CASE("the graphs for cuDNN compute attention and its gradients", "[long]") {
  compare({{20, 3, 31}, {20, 3, 31}, 2, 2, 8, false}, true);
  compare({{17, 0, 40}, {17, 0, 40}, 4, 2, 4, true}, true);  // shared key heads, causal, no rows
  compare({{13, 30}, {5, 1}, 2, 2, 8, false}, false);        // to text
  compare({{9, 2, 4, 6, 3}, {12, 1, 1, 30, 2}, 4, 1, 4, false}, false);
}

TEST_CASE("the graphs for cuDNN compute a pack that is cut into parts", "[long]") {
  compare({{4, 5, 8, 1, 2, 3, 7}, {4, 5, 8, 1, 2, 3, 7}, 2, 1, 4, true}, true, false);
  compare({{9, 2, 6}, {12, 1, 10}, 1, 1, 4, false}, false, false);
  for (const bool fill_up : {true, false})  // samples without keys
    compare({{9, 2, 6, 5}, {12, 0, 10, 0}, 2, 1, 4, false}, false, fill_up);
}

TEST_CASE("keys in parts by the graphs for cuDNN add up by their statistics", "[long]") {
  compare_parts({{12, 5, 8}, {20, 6, 9}, 2, 1, 4, false}, {7, 3, 1});
  compare_parts({{12, 5, 8}, {20, 6, 9}, 2, 2, 4, false}, {0, 6, 4});  // not of each sample
}

// Its weights are divided before they are rounded, as a graph tells it; kernels divide afterwards.
TEST_CASE(
    "the graph of attention in FP8 computes it, with scales and the largest of what it makes") {
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {40, 40};
  pack.heads = 4, pack.key_heads = 2, pack.head_dim = 64;
  const HeadKinds kinds{4, 2, 2, 64};
  const Tensor qkv = noise_tensor({80, 512}, 1, DType::bf16);
  const Tensor largest = largest_of_kinds(qkv, kinds), codes = quantize_heads(qkv, kinds, largest);
  const Tensor expected = self_attention_codes(codes, largest, pack).to(DType::f32);
  Numbers values;
  for (std::int64_t i = 0; i < codes.elements(); ++i)
    values.push_back(f8e4m3_to_float(codes.data<std::uint8_t>()[i]));
  const auto scale = [&](int kind) {
    return Numbers{fp8_scale(largest.data<std::uint32_t>()[kind]).scale};
  };
  for (const bool wide : {false, true}) {
    std::map<std::int64_t, Numbers> memory{{kCodesQ, values},
                                           {kCodesK, {values.begin() + 256, values.end()}},
                                           {kCodesV, {values.begin() + 384, values.end()}},
                                           {kFp8Out, Numbers(80 * 256, 7e7)},
                                           {kDescaleQ, scale(0)},
                                           {kDescaleK, scale(1)},
                                           {kDescaleV, scale(2)},
                                           {kScaleOut, {1 / scale(2)[0]}},
                                           {kLargestWeight, {7e7}},
                                           {kLargestOut, {7e7}}};
    Interpreter(attention_fp8_graph({2, 40, 40, 4, 2, 64, 512, 512, wide}), memory);
    double difference = 0, size = 0, most = 0;
    for (std::size_t i = 0; i < memory[kFp8Out].size(); ++i) {
      const double got = memory[kFp8Out][i] * (wide ? 1 : scale(2)[0]);
      difference += std::pow(got - expected.floats()[i], 2);
      size += std::pow(expected.floats()[i], 2);
      most = std::max(most, std::abs(got));
    }
    const double error = std::sqrt(difference / size);
    INFO(error);
    CHECK(error < 0.05);
    CHECK(memory[kLargestOut][0] == Approx(most).epsilon(0.07));
    CHECK(memory[kLargestWeight][0] > 1. / 40);
    CHECK(memory[kLargestWeight][0] <= 1);
  }
}
