// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/partial_attention.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/check.h"
#include "ops/determinism.h"
#include "ops/pointwise/add.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

using Lengths = std::vector<std::int64_t>;

std::int64_t total(const Lengths& lengths) {
  std::int64_t sum = 0;
  for (const std::int64_t n : lengths)
    sum += n;
  return sum;
}

// The same keys in parts: parts[p][sample] of each sample, in order.
struct PartedCase {
  AttentionPack whole;
  std::vector<Lengths> parts;
  Tensor q, kv, dout;
  std::vector<Tensor> kv_parts;
  std::vector<AttentionPack> packs;
};

// Rows of the whole that part `p` has.
Lengths rows_of(const PartedCase& c, std::size_t p) {
  Lengths rows;
  std::int64_t begin = 0;
  for (std::size_t s = 0; s < c.whole.key_lengths.size(); ++s) {
    std::int64_t at = begin;
    for (std::size_t before = 0; before < p; ++before)
      at += c.parts[before][s];
    for (std::int64_t i = 0; i < c.parts[p][s]; ++i)
      rows.push_back(at + i);
    begin += c.whole.key_lengths[s];
  }
  return rows;
}

PartedCase make_case(AttentionPack whole, std::vector<Lengths> parts, DType dtype, float size = 1) {
  PartedCase c;
  whole.key_lengths.assign(whole.query_lengths.size(), 0);
  for (const Lengths& part : parts)
    for (std::size_t s = 0; s < part.size(); ++s)
      whole.key_lengths[s] += part[s];
  c.whole = whole;
  c.parts = std::move(parts);
  const std::int64_t width = std::int64_t{whole.heads} * whole.head_dim,
                     keys = 2 * std::int64_t{whole.key_heads} * whole.head_dim;
  Tensor q = noise_tensor({total(whole.query_lengths), width}, 1);
  for (float& v : q.floats())
    v *= size;
  c.q = q.to(dtype);
  c.kv = noise_tensor({total(whole.key_lengths), keys}, 2, dtype);
  c.dout = noise_tensor(c.q.shape(), 3, dtype);
  for (std::size_t p = 0; p < c.parts.size(); ++p) {
    AttentionPack& pack = c.packs.emplace_back(whole);
    pack.key_lengths = c.parts[p];
    const Tensor& part = c.kv_parts.emplace_back(Shape{total(c.parts[p]), keys}, dtype);
    std::int64_t to = 0;
    for (const std::int64_t row : rows_of(c, p))
      copy(c.kv.rows(row, row + 1), part.rows(to, to + 1)), ++to;
  }
  return c;
}

// log(sum over the keys of exp(q k / sqrt(K))), in double: [H, S].
std::vector<double> log_sums(const PartedCase& c) {
  const Tensor q = c.q.to(DType::f32), kv = c.kv.to(DType::f32);
  const int K = c.whole.head_dim, group = c.whole.heads / c.whole.key_heads;
  std::vector<double> result;
  for (int h = 0; h < c.whole.heads; ++h) {
    std::int64_t row = 0, begin = 0;
    for (std::size_t s = 0; s < c.whole.query_lengths.size(); ++s) {
      for (std::int64_t i = 0; i < c.whole.query_lengths[s]; ++i, ++row) {
        std::vector<double> scores;
        for (std::int64_t j = begin; j < begin + c.whole.key_lengths[s]; ++j) {
          double score = 0;
          for (int d = 0; d < K; ++d)
            score += double{q.data<float>()[row * q.size(1) + h * K + d]} *
                     kv.data<float>()[j * kv.size(1) + h / group * K + d];
          scores.push_back(score / std::sqrt(K));
        }
        double sum = 0;
        const double top = scores.empty() ? 0 : *std::ranges::max_element(scores);
        for (const double score : scores)
          sum += std::exp(score - top);
        result.push_back(top + std::log(sum));
      }
      begin += c.whole.key_lengths[s];
    }
  }
  return result;
}

void compare(const PartedCase& c, double exact = 3e-6) {
  const bool rounded = c.q.dtype() == DType::bf16;
  const double tolerance = rounded ? 2e-2 : exact;
  Tape tape;
  const Tensor dq = Tensor::zeros(c.q.shape()), dkv = Tensor::zeros(c.kv.shape());
  tape.watch(c.q, dq);
  tape.watch(c.kv, dkv);
  const Tensor all = cross_attention(tape, c.q, c.kv, c.whole);
  const Tensor expected = all.clone();
  tape.backward(all, c.dout.clone());

  AttentionSum sum;
  for (std::size_t p = 0; p < c.packs.size(); ++p)
    sum.add(c.q, c.kv_parts[p], c.packs[p]);
  CHECK(distance(sum.out(), expected) < tolerance);
  const std::vector<double> lse = log_sums(c);
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double found = sum.log_sum_exp().floats()[i];
    if (std::isinf(lse[i]))
      REQUIRE(found == lse[i]);
    else
      REQUIRE(std::abs(found - lse[i]) < (rounded ? 2e-2 : 2e-5) * (1 + std::abs(lse[i])));
  }

  const Tensor out = sum.out().to(c.q.dtype());
  const Tensor dq_sum = Tensor::zeros(c.q.shape());
  const Tensor dkv_made = Tensor::zeros(c.kv.shape());
  for (std::size_t p = 0; p < c.packs.size(); ++p) {
    const PartGradients part =
        attend_part_backward(c.q, c.kv_parts[p], c.packs[p], out, sum.log_sum_exp(), c.dout);
    add_in_place(dq_sum, part.dq);
    const Tensor plain = part.dkv.to(DType::f32);
    std::int64_t from = 0;
    for (const std::int64_t row : rows_of(c, p))
      copy(plain.rows(from, from + 1), dkv_made.rows(row, row + 1)), ++from;
  }
  CHECK(distance(dq_sum, dq) < tolerance);
  CHECK(distance(dkv_made, dkv) < tolerance);
}

}  // namespace

TEST_CASE("attention over parts of the keys adds up to attention over all, forward and back") {
  for (const DType dtype : {DType::f32, DType::bf16})
    each_isa(
        [&] {
          // Samples without keys in the first part, in the last, in the middle, and in all.
          compare(make_case({{40, 5, 70, 3}, {}, 2, 2, 32},
                            {{0, 30, 7, 0}, {20, 2, 0, 0}, {9, 0, 80, 0}}, dtype));
          compare(make_case({{33, 4}, {}, 4, 2, 12}, {{5, 1}, {70, 1}}, dtype));  // shared keys
          compare(make_case({{20, 0, 9}, {}, 2, 2, 16}, {{3, 4, 5}, {0, 0, 0}, {1, 0, 90}}, dtype));
          compare(make_case({{65}, {}, 1, 1, 64}, {{130}}, dtype));
          if (dtype == DType::f32)  // sharp
            compare(make_case({{17, 2}, {}, 2, 1, 16}, {{20, 3}, {20, 3}}, dtype, 5), 1.5e-5);
          const PartedCase big = make_case({{9}, {}, 1, 1, 16}, {{30}, {30}}, dtype, 300);
          AttentionSum sum;
          for (std::size_t p = 0; p < 2; ++p)
            sum.add(big.q, big.kv_parts[p], big.packs[p]);
          for (const Tensor& made : {sum.out(), sum.log_sum_exp()})
            for (const float v : made.floats())
              REQUIRE(std::isfinite(v));
        },
        true);
}

TEST_CASE("a part's result is f32, so parts in bf16 add up to the whole, rounded once") {
  each_isa(
      [] {
        const PartedCase c =
            make_case({{65, 20}, {}, 2, 2, 32}, {{64, 9}, {40, 70}, {64, 0}}, DType::bf16);
        AttentionSum sum;
        for (std::size_t p = 0; p < c.packs.size(); ++p) {
          const PartOfAttention part = attend_part(c.q, c.kv_parts[p], c.packs[p]);
          CHECK(part.out.dtype() == DType::f32);
          sum.add(part, c.packs[p]);
        }
        const PartOfAttention whole = attend_part(c.q, c.kv, c.whole);
        // Products of bf16 round each weight beside the largest of its part; else sums alone
        // differ.
        const bool low = isa() >= Isa::avx512_bf16;
        CHECK(distance(sum.out(), whole.out) < (low ? 3e-3 : 1e-6));
        const Tensor one = whole.out.to(DType::bf16).to(DType::f32),
                     many = sum.out().to(DType::bf16).to(DType::f32);
        Tape silent(false);
        const Tensor plain = cross_attention(silent, c.q, c.kv, c.whole).to(DType::f32);
        std::int64_t other = 0;
        for (std::int64_t i = 0; i < one.elements(); ++i) {
          REQUIRE(one.floats()[i] == plain.floats()[i]);
          other += one.floats()[i] != many.floats()[i] ? 1 : 0;
        }
        if (!low) CHECK(other <= one.elements() / 500);
      },
      true);
}

TEST_CASE("attention in parts: a NaN reaches its sample's queries and no others") {
  PartedCase c = make_case({{3, 4}, {}, 1, 1, 16}, {{2, 5}, {6, 5}}, DType::f32);
  c.kv_parts[1].floats()[0] = NAN;
  AttentionSum sum;
  for (std::size_t p = 0; p < 2; ++p)
    sum.add(c.q, c.kv_parts[p], c.packs[p]);
  for (std::size_t i = 0; i < sum.out().floats().size(); ++i)
    REQUIRE(std::isnan(sum.out().floats()[i]) == (i < 3 * 16));
}

TEST_CASE("attention in parts is counted as cuDNN's on a GPU, unless it must be deterministic") {
  const DType dtype = GENERATE(DType::bf16, DType::f32);
  const bool exact = GENERATE(false, true);
  set_deterministic(exact);
  AttentionPack pack{{40, 30}, {20, 0}, 2, 2, 64};
  const MetaAccount account(Device::cuda);
  const auto made = [&](std::int64_t rows, std::int64_t width) {
    return Tensor({rows, width}, dtype, Device::meta);
  };
  const Tensor q = made(70, 128), kv = made(20, 256);
  const PartOfAttention part = attend_part(q, kv, pack);
  attend_part_backward(q, kv, pack, q, part.log_sum_exp, q);
  set_deterministic(false);
  int calls = 0;
  for (const auto& [call, times] : account.calls()) {
    if (call.kind != WorkKind::attention) continue;
    ++calls;
    CHECK(call.cudnn == (dtype == DType::bf16 && !exact));
  }
  CHECK(calls == 2);
}

TEST_CASE("attention in parts refuses what does not fit") {
  const PartedCase c = make_case({{3, 4}, {}, 1, 1, 16}, {{3, 5}, {6, 5}}, DType::f32);
  AttentionPack causal = c.packs[1];
  causal.causal = true;
  CHECK_THROWS_WITH(attend_part(c.q, c.kv_parts[1], causal), Catch::Contains("not causal"));
  AttentionSum sum;
  sum.add(c.q, c.kv_parts[0], c.packs[0]);
  AttentionPack other = c.packs[1];
  other.query_lengths = {3, 3};
  CHECK_THROWS_WITH(sum.add(c.q.rows(0, 6), c.kv_parts[1], other), Catch::Contains("does not add"));
  PartOfAttention low = attend_part(c.q, c.kv_parts[1], c.packs[1]);
  low.out = low.out.to(DType::bf16);
  CHECK_THROWS_WITH(sum.add(low, c.packs[1]), Catch::Contains("a part of BF16 is rounded"));
  CHECK_THROWS_WITH(attend_part_backward(c.q, c.kv_parts[0], c.packs[0], sum.out().rows(0, 6),
                                         sum.log_sum_exp(), c.dout),
                    Catch::Contains("do not fit queries"));
}
