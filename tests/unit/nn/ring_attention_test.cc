// The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include "nn/ring_attention.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "dist/threads.h"
#include "ops/attention/attention_fp8.h"
#include "support/distance.h"
#include "support/ring_case.h"

using namespace vfm;

namespace {

using Case = test::RingCase;
using test::Lengths;
using test::part_of;
using test::put;
using test::RingOfAll;

struct Outcome : test::RingOutcome {
  std::vector<dist::Traffic::Count> forward, both;  // by rank
};

Outcome in_ring(const Case& c) {
  const Tensor all = c.queries_keys_values(), all_dout = c.cotangent();
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
  const test::RingOutcome expected = test::together(c);
  const Outcome found = in_ring(c), again = in_ring(c);
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
    const Tensor all = c.queries_keys_values();
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
