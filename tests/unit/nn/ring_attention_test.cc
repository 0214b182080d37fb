// The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include "nn/ring_attention.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "dist/threads.h"
#include "ops/attention/attention_fp8.h"
#include "support/distance.h"
#include "support/noise.h"

using namespace vfm;

namespace {

using Lengths = std::vector<std::int64_t>;

// Who has how many tokens of each sample, in order: rows[rank][sample].
struct Case {
  std::vector<Lengths> rows;
  int heads = 2, key_heads = 2, head_dim = 16;
  DType dtype = DType::f32;

  int ranks() const { return static_cast<int>(rows.size()); }
  std::int64_t width() const { return std::int64_t{heads} * head_dim; }
  std::int64_t all_width() const { return width() + 2 * std::int64_t{key_heads} * head_dim; }
  Lengths lengths() const {
    Lengths sum(rows.front().size(), 0);
    for (const Lengths& part : rows)
      for (std::size_t s = 0; s < part.size(); ++s)
        sum[s] += part[s];
    return sum;
  }
  std::int64_t tokens(std::size_t rank) const {
    std::int64_t sum = 0;
    for (const std::int64_t n : rows[rank])
      sum += n;
    return sum;
  }
  /// Where the rows of a rank lie among all.
  Lengths places(std::size_t rank) const {
    Lengths result;
    std::int64_t begin = 0;
    for (std::size_t s = 0; s < rows[rank].size(); ++s) {
      std::int64_t at = begin;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::int64_t i = 0; r == rank && i < rows[r][s]; ++i)
          result.push_back(at + i);
        at += rows[r][s];
      }
      begin = at;
    }
    return result;
  }
};

struct Outcome {
  Tensor out, gradient;                             // f32, of all tokens
  std::vector<dist::Traffic::Count> forward, both;  // by rank
};

Tensor part_of(const Tensor& all, const Lengths& places) {
  const Tensor part({static_cast<std::int64_t>(places.size()), all.size(1)}, all.dtype());
  std::int64_t to = 0;
  for (const std::int64_t row : places)
    copy(all.rows(row, row + 1), part.rows(to, to + 1)), ++to;
  return part;
}

void put(const Tensor& part, const Lengths& places, const Tensor& all) {
  const Tensor plain = part.to(DType::f32);
  std::int64_t from = 0;
  for (const std::int64_t row : places)
    copy(plain.rows(from, from + 1), all.rows(row, row + 1)), ++from;
}

Tensor queries_keys_values(const Case& c) {
  std::int64_t tokens = 0;
  for (const std::int64_t n : c.lengths())
    tokens += n;
  return noise_tensor({tokens, c.all_width()}, 1, c.dtype);
}

Tensor cotangent(const Case& c, const Tensor& qkv) {
  return noise_tensor({qkv.size(0), c.width()}, 2, c.dtype);
}

Outcome together(const Case& c) {
  Outcome outcome;
  const Tensor qkv = queries_keys_values(c), dout = cotangent(c, qkv);
  outcome.gradient = Tensor::zeros(qkv.shape());
  ops::Tape tape;
  tape.watch(qkv, outcome.gradient);
  const Tensor out = ops::self_attention(
      tape, qkv, {c.lengths(), c.lengths(), c.heads, c.key_heads, c.head_dim, false});
  outcome.out = out.to(DType::f32).clone();
  tape.backward(out, dout);
  return outcome;
}

/// A group of all ranks of the world, and the ring of a case in it.
struct RingOfAll {
  std::unique_ptr<dist::Group> group;
  nn::Ring ring;

  RingOfAll(dist::World& world, const Case& c) {
    std::vector<int> ranks;
    for (int r = 0; r < c.ranks(); ++r)
      ranks.push_back(r);
    group = world.group("cp", ranks);
    ring.group = group.get();
    const Lengths& own = c.rows[static_cast<std::size_t>(world.rank())];
    for (const Lengths& keys : c.rows)
      ring.packs.push_back({own, keys, c.heads, c.key_heads, c.head_dim, false});
  }
};

Outcome in_ring(const Case& c) {
  const Tensor all = queries_keys_values(c), all_dout = cotangent(c, all);
  Outcome outcome;
  outcome.out = Tensor({all.size(0), c.width()});
  outcome.gradient = Tensor(all.shape());
  outcome.forward.resize(c.rows.size()), outcome.both.resize(c.rows.size());
  std::mutex mutex;
  dist::thread_worlds(c.ranks(), [&](dist::World& world) {
    const RingOfAll all_ranks(world, c);
    const auto rank = static_cast<std::size_t>(world.rank());
    const Lengths places = c.places(rank);
    const Tensor qkv = part_of(all, places), gradient = Tensor::zeros(qkv.shape());
    ops::Tape tape;
    tape.watch(qkv, gradient);
    const Tensor out = nn::ring_attention(tape, qkv, all_ranks.ring);
    const Tensor kept = out.clone();
    const dist::Traffic::Count forward = world.traffic().of("cp");
    tape.backward(out, part_of(all_dout, places));
    const std::lock_guard lock(mutex);
    outcome.forward[rank] = forward;
    outcome.both[rank] = world.traffic().of("cp");
    put(kept, places, outcome.out);
    put(gradient, places, outcome.gradient);
  });
  return outcome;
}

void compare(const Case& c) {
  INFO(c.ranks() << " ranks, " << dtype_name(c.dtype));
  const double tolerance = c.dtype == DType::f32 ? 3e-6 : 2e-2;
  const Outcome expected = together(c), found = in_ring(c), again = in_ring(c);
  CHECK(distance(found.out.floats(), expected.out.floats()) < tolerance);
  CHECK(distance(found.gradient.floats(), expected.gradient.floats()) < tolerance);
  CHECK(distance(found.gradient.floats(), again.gradient.floats()) == 0);
  // A rank sends on its own part and those that reach it, but not the one that the next rank had
  // first; in backward again, and as much in f32 of which the first is the one before it.
  const auto ranks = c.rows.size();
  const auto element = static_cast<std::int64_t>(dtype_size(c.dtype));
  const std::int64_t width = 2 * std::int64_t{c.key_heads} * c.head_dim;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::int64_t sent = 0, back = 0;
    for (std::size_t step = 0; step + 1 < ranks; ++step) {
      sent += c.tokens((r + ranks - step) % ranks) * width * element;
      back += c.tokens((r + ranks - step - 1) % ranks) * width * 4;
    }
    CHECK(found.forward[r].bytes == sent);
    CHECK(found.both[r].bytes == 2 * sent + back);
  }
}

}  // namespace

TEST_CASE("a ring of ranks gives the attention of one, forward and back, with these bytes sent") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    compare({{{8}, {8}}, 2, 2, 16, dtype});
    compare({{{9, 0, 4}, {8, 1, 5}}, 2, 2, 16, dtype});
    compare({{{6, 1, 0}, {6, 0, 70}, {5, 0, 1}}, 4, 2, 12, dtype});  // shared keys; short samples
    compare({{{0, 3}, {2, 0}, {1, 1}, {40, 0}}, 2, 1, 32, dtype});   // no keys in common
  }
  compare({{{7, 5}}});  // alone
}

TEST_CASE("bytes of a ring with even parts are those of the formula") {
  for (const int c : {2, 3, 4}) {
    const Case even{std::vector<Lengths>(static_cast<std::size_t>(c), Lengths{12, 4}), 4, 2, 8,
                    DType::bf16};
    const Outcome found = in_ring(even);
    for (const dist::Traffic::Count& sent : found.forward) {
      CHECK(sent.bytes == 2 * (c - 1) * 16 * (2 * 8) * 2);  // 2 (c-1) S/c G K b
      CHECK(sent.calls == c - 1);
    }
  }
}

TEST_CASE(
    "a ring in FP8 attends in bf16 over the heads that one rank rounds, and sends a byte each") {
  for (const Case& c : {Case{{{8}, {8}}, 2, 2, 64, DType::bf16},
                        Case{{{9, 0, 4}, {8, 1, 5}}, 2, 1, 64, DType::bf16},
                        Case{{{6, 1, 0}, {6, 0, 70}, {5, 0, 1}}, 4, 2, 128, DType::bf16},
                        Case{{{0, 3}, {2, 0}, {1, 1}, {40, 0}}, 2, 1, 64, DType::bf16}}) {
    INFO(c.ranks() << " ranks");
    const Tensor all = queries_keys_values(c);
    ops::Tape silent(false);
    const ops::AttentionPack pack{c.lengths(), c.lengths(), c.heads,
                                  c.key_heads, c.head_dim,  false};
    const ops::HeadKinds kinds{c.heads, c.key_heads, c.key_heads, c.head_dim};
    const Tensor largest = ops::largest_of_kinds(all, kinds);
    const Tensor restored =
        ops::restore_heads(ops::quantize_heads(all, kinds, largest), kinds, largest);
    const Tensor expected = ops::self_attention(silent, restored, pack);
    Outcome found;
    found.out = Tensor({all.size(0), c.width()});
    found.forward.resize(c.rows.size());
    std::mutex mutex;
    dist::thread_worlds(c.ranks(), [&](dist::World& world) {
      const RingOfAll all_ranks(world, c);
      const auto rank = static_cast<std::size_t>(world.rank());
      const nn::LowHeads low =
          nn::round_heads(part_of(all, c.places(rank)), pack, all_ranks.group.get());
      world.traffic().reset();
      const Tensor out = nn::ring_attention_fp8(low, all_ranks.ring);
      const std::lock_guard lock(mutex);
      found.forward[rank] = world.traffic().of("cp");
      put(out, c.places(rank), found.out);
    });
    // Sums in another order now and then decide a rounding to bf16. Instructions for bf16 round
    // weights, too, beside the largest of each part.
    const Tensor wanted = expected.to(DType::f32);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < wanted.floats().size(); ++i) {
      difference += std::pow(double{wanted.floats()[i]} - found.out.floats()[i], 2);
      size += std::pow(double{wanted.floats()[i]}, 2);
    }
    CHECK(std::sqrt(difference / size) < 4e-3);
    const std::int64_t width = 2 * std::int64_t{c.key_heads} * c.head_dim;
    const auto ranks = c.rows.size();
    for (std::size_t r = 0; r < ranks; ++r) {
      std::int64_t sent = 0;
      for (std::size_t step = 0; step + 1 < ranks; ++step)
        sent += c.tokens((r + ranks - step) % ranks) * width;  // a byte an element
      CHECK(found.forward[r].bytes == sent);
    }
  }
}

TEST_CASE("a ring needs the keys of each of its ranks") {
  CHECK_THROWS_WITH(dist::thread_worlds(2,
                                        [](dist::World& world) {
                                          const auto group = world.group("cp", {0, 1});
                                          ops::Tape tape;
                                          nn::Ring ring;
                                          ring.group = group.get();
                                          ring.packs.resize(1);
                                          nn::ring_attention(tape, Tensor({1, 6}), ring);
                                        }),
                    Catch::Contains("2 ranks, keys of 1"));
}
