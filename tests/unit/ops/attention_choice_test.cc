// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_choice.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "ops/attention/attention_shape.h"
#include "ops/determinism.h"

using namespace vfm::ops;

TEST_CASE("cuDNN takes bf16, head dims of 64 and 128, aligned rows") {
  const std::vector<std::int64_t> starts{0, 10, 30};
  AttentionRequest good;
  good.bf16 = good.aligned = true;
  good.head_dim = 128;
  good.query_starts = good.key_starts = starts;
  CHECK(why_not_cudnn(good).empty());
  AttentionRequest r = good;
  r.head_dim = 64;
  CHECK(why_not_cudnn(r).empty());
  r.head_dim = 96;
  CHECK(why_not_cudnn(r) == "it takes head dims of 64 and 128, not 96");
  r = good, r.bf16 = false;
  CHECK(why_not_cudnn(r) == "it takes bf16 only");
  r = good, r.aligned = false;
  CHECK_FALSE(why_not_cudnn(r).empty());
  r = good, r.deterministic = true;
  CHECK(why_not_cudnn(r) == "its backward pass is not deterministic");
}

TEST_CASE("cuDNN takes packs of which a sample has queries and keys") {
  const std::vector<std::int64_t> some{0, 10, 10, 30}, other{0, 5, 5, 7}, missing{0, 0, 6, 6},
      empty{0, 0};
  AttentionRequest r;
  r.bf16 = r.aligned = true;
  r.head_dim = 64;
  r.query_starts = some, r.key_starts = other;
  CHECK(why_not_cudnn(r).empty());
  r.key_starts = missing;
  CHECK(why_not_cudnn(r) == "no sample has queries and keys");
  r.query_starts = r.key_starts = empty;
  CHECK(why_not_cudnn(r) == "no sample has queries and keys");
  r.query_starts = r.key_starts = {};
  CHECK(why_not_cudnn(r) == "no sample has queries and keys");
  // The mask of its graph is that of as many queries as keys.
  r.causal = true;
  r.query_starts = r.key_starts = some;
  CHECK(why_not_cudnn(r).empty());
  r.key_starts = other;
  CHECK(why_not_cudnn(r) == "a sample has other numbers of causal queries and of keys");
}

TEST_CASE("the choice of a body and determinism are what was set") {
  CHECK(attention_body() == AttentionBody::automatic);
  set_attention_body(AttentionBody::own);
  CHECK(attention_body() == AttentionBody::own);
  set_attention_body(AttentionBody::automatic);
  CHECK_FALSE(deterministic());
  set_deterministic(true);
  CHECK(deterministic());
  set_deterministic(false);
}

TEST_CASE("shapes of packs are rounded up, so that few plans serve many packs") {
  for (const auto& [n, expected] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 1}, {2, 2}, {3, 4}, {5, 8}, {64, 64}})
    CHECK(round_up_samples(n) == expected);
  for (const auto& [n, expected] : std::vector<std::pair<int, int>>{{0, 128},
                                                                    {1, 128},
                                                                    {128, 128},
                                                                    {129, 256},
                                                                    {1024, 1024},
                                                                    {1025, 1152},
                                                                    {8192, 8192},
                                                                    {8193, 9216},
                                                                    {73728, 73728},
                                                                    {73729, 81920}})
    CHECK(round_up_rows(n) == expected);
  for (std::int64_t n = 1; n < 20000; n += 7) {
    CHECK(round_up_rows(n) >= n);
    CHECK(round_up_rows(round_up_rows(n)) == round_up_rows(n));
    if (n > 1024) CHECK(round_up_rows(n) * 8 <= n * 9);
  }
}

TEST_CASE("packs of about the same size have one shape, others another") {
  const std::vector<std::int64_t> a{0, 100, 300, 420}, b{0, 256, 300, 310, 500}, c{0, 257};
  AttentionArgs args;
  args.heads = 6, args.key_heads = 2, args.head_dim = 64;
  args.q_stride = args.kv_stride = 640;
  args.scale = 0.125f;
  const auto shape = [&](const std::vector<std::int64_t>& starts, bool fill_up = true) {
    args.samples = static_cast<std::int64_t>(starts.size()) - 1;
    args.query_starts = args.key_starts = starts.data();
    return attention_shape(args, fill_up);
  };
  const AttentionShape first = shape(a);
  CHECK(first.samples == 4);
  CHECK(first.most_queries == 256);
  CHECK(first.most_keys == 256);
  CHECK(first == shape(b));
  CHECK(first != shape(c));
  CHECK(shape(a, false).samples == 3);
  const std::vector<std::int64_t> hole{0, 5, 5};
  const auto has_empty = [&](const std::vector<std::int64_t>& starts, bool fill_up) {
    const AttentionShape made = shape(starts, fill_up);
    return has_empty_samples(args, made);
  };
  CHECK(has_empty(a, true));
  CHECK_FALSE(has_empty(a, false));
  CHECK_FALSE(has_empty(b, true));
  CHECK(has_empty(hole, false));
  CHECK(text_of(first) == "4 samples of 256 queries and 256 keys, 6 heads of 64, 2 key heads");
  args.causal = true;
  CHECK(first != shape(a));
  args.causal = false, args.q_stride = 648;
  CHECK(first != shape(a));
  args.q_stride = 640, args.scale = 1;
  CHECK(first != shape(a));
}

TEST_CASE("a pack that is not filled up is cut into parts of 2^n samples, so that plans are few") {
  std::vector<std::int64_t> starts{0};
  AttentionArgs args;
  args.query_starts = args.key_starts = starts.data();
  std::set<AttentionShape> plans;
  for (std::int64_t samples = 1; samples <= 100; ++samples) {
    // All of one length, so that nothing but the number of samples differs.
    starts.push_back(samples * 200);
    args.samples = samples;
    args.query_starts = args.key_starts = starts.data();
    std::int64_t next = 0, before = 128;
    for (const AttentionPart& part : attention_parts(args, false)) {
      plans.insert(part.shape);
      CHECK(part.first == next);
      CHECK(part.shape.samples == part.count);
      CHECK(part.count < before);
      CHECK(part.starts(starts.data()).front() == next * 200);
      next += before = part.count;
      CHECK(part.starts(starts.data()).back() == next * 200);
    }
    CHECK(next == samples);
    const std::vector<AttentionPart> whole = attention_parts(args, true);
    REQUIRE(whole.size() == 1);
    CHECK(whole.front().first == 0);
    CHECK(whole.front().count == samples);
    CHECK(whole.front().shape == attention_shape(args, true));
  }
  CHECK(plans.size() == 7);  // of 1, 2, 4, ... 64
  // A part has the rows of its pack.
  const std::vector<std::int64_t> mixed{0, 900, 1000, 1100};
  args.samples = 3;
  args.query_starts = args.key_starts = mixed.data();
  CHECK(attention_parts(args, false).back().shape.most_queries == round_up_rows(900));
}

TEST_CASE("samples without queries or without keys are in no part") {
  const std::vector<std::int64_t> queries{0, 5, 9, 9, 12, 20, 21}, keys{0, 3, 4, 8, 8, 9, 12};
  AttentionArgs args;
  args.samples = 6;
  args.query_starts = queries.data(), args.key_starts = keys.data();
  for (const bool fill_up : {false, true}) {
    const std::vector<AttentionPart> parts = attention_parts(args, fill_up);
    REQUIRE(parts.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(parts[i].first == (i == 0 ? 0 : 4));
      CHECK(parts[i].count == 2);
      CHECK(parts[i].shape.samples == 2);
    }
  }
  args.samples = 5;
  CHECK(attention_parts(args, true).back().count == 1);
  CHECK(attention_parts(args, true).back().shape.samples == 1);
}

TEST_CASE("lists for a pack are filled up with samples of length zero") {
  const std::vector<std::int64_t> starts{0, 3, 3, 10};
  CHECK(padded_lengths(starts, 4) == std::vector<std::int32_t>{3, 0, 7, 0});
  CHECK(ragged_offsets(starts, 4, 5) == std::vector<std::int64_t>{0, 15, 15, 50, 50});
  // Beyond 2^31 elements.
  CHECK(ragged_offsets(starts, 4, std::int64_t{1} << 40).back() == std::int64_t{10} << 40);
}
