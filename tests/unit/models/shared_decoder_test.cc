// An autoregressive decoder that several ranks share gives the logits, the loss and the gradients
// of one rank. The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "models/decoder/decoder.h"
#include "models/dit/pipeline_stages.h"
#include "nn/layout_on_mesh.h"
#include "nn/token_shard.h"
#include "support/distance.h"
#include "support/parameter_parts.h"
#include "support/small_decoder.h"

using namespace vfm;
using dist::Axes;
using dist::Mesh;
using models::CausalDecoder;
using models::CodeBatch;
using models::DecoderConfig;
using nn::CpKind;
using nn::NetworkLayout;
using nn::Recompute;

namespace {

// Neither the vocabulary nor the hidden width is divided by the numbers of ranks.
DecoderConfig uneven_decoder(int heads, int key_heads) {
  DecoderConfig c = small_decoder(heads, key_heads);
  c.vocabulary = 13;
  c.mlp_ratio = 0.52;
  return c;
}

DecoderConfig without_text(DecoderConfig c) {
  c.text_embed_dim = 0;
  return c;
}

// The codes themselves, but for some that have none.
std::vector<std::int32_t> targets_of(const CodeBatch& batch) {
  std::vector<std::int32_t> targets = batch.codes;
  for (std::size_t i = 1; i < targets.size(); i += 5)
    targets[i] = -1;
  return targets;
}

/// How a pass is shared, and computed.
struct DecoderWay {
  int tp = 1, cp = 1;
  CpKind kind = CpKind::gather;
  DType compute = DType::f32;
  Recompute recompute = Recompute::none;
  bool offload = false;
};

struct DecoderOutcome {
  Tensor logits;                            // [S, V]
  std::vector<double> sums;                 // of the samples' losses
  std::map<std::string, Tensor> gradients;  // whole
};

DecoderOutcome pass(const CausalDecoder& decoder, const CodeBatch& batch) {
  nn::zero_gradients(decoder.parameters());
  ops::Tape tape;
  const Tensor logits = decoder.forward(tape, batch);
  DecoderOutcome outcome;
  outcome.logits = logits.clone();
  const models::CodeLoss silent = decoder.loss(logits, batch, targets_of(batch), 0.02, 0);
  CHECK_FALSE(silent.tokens.seed.defined());
  const models::CodeLoss loss = decoder.loss(logits, batch, targets_of(batch), 0.02, 1);
  outcome.sums = loss.read_sums();
  CHECK(silent.read_sums() == outcome.sums);
  tape.backward(logits, loss.tokens.seed);
  return outcome;
}

DecoderOutcome alone(const DecoderConfig& config, const CodeBatch& batch, DType compute) {
  const CausalDecoder decoder(config, 1, compute);
  write_noise(decoder.parameters());
  DecoderOutcome outcome = pass(decoder, batch);
  for (const nn::Parameter* p : decoder.parameters())
    outcome.gradients[p->name] = p->grad.clone();
  return outcome;
}

std::vector<std::int64_t> lengths_of(const CodeBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (const models::CodeSample& sample : batch.samples)
    lengths.push_back(sample.codes());
  return lengths;
}

DecoderOutcome shared(const DecoderConfig& config, const CodeBatch& batch, const DecoderWay& way) {
  DecoderOutcome outcome;
  outcome.logits = Tensor::zeros({std::ssize(batch.codes), config.vocabulary});
  std::mutex mutex;
  dist::thread_worlds(way.tp * way.cp, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = way.tp, sizes.cp = way.cp;
    const Mesh mesh(world, sizes);
    const NetworkLayout layout{&mesh.group(Axes::tp), &mesh.group(Axes::cp), way.kind};
    CausalDecoder decoder(config, 1, way.compute, Device::cpu, true, layout);
    decoder.set_recompute(way.recompute, way.offload);
    write_noise(decoder.parameters());
    DecoderOutcome own = pass(decoder, batch);
    mesh.group(Axes::tp | Axes::cp).all_reduce(std::span(own.sums)).wait();
    for (const nn::Parameter* p : decoder.parameters())
      mesh.group(p->whole() ? Axes::tp | Axes::cp : Axes::cp).all_reduce(p->grad).wait();
    const nn::TokenShard shard(lengths_of(batch), layout, Device::cpu, true);
    const std::int64_t first = nn::share(config.vocabulary, layout.tp_rank(), way.tp);
    const std::lock_guard lock(mutex);
    outcome.sums = own.sums;
    const float* from = own.logits.data<float>();
    for (const ops::RowRange& range : shard.sequence)
      for (std::int64_t row = range.begin; row < range.end; ++row, from += own.logits.size(1))
        std::copy_n(from, own.logits.size(1),
                    outcome.logits.data<float>() + row * config.vocabulary + first);
    for (const nn::Parameter* p : decoder.parameters())
      place_gradient(*p, outcome.gradients[p->name]);
  });
  return outcome;
}

void compare(const DecoderConfig& config, const CodeBatch& batch, const DecoderWay& way) {
  INFO("tp=" << way.tp << " cp=" << way.cp << ", kind " << static_cast<int>(way.kind)
             << ", recompute " << nn::recompute_name(way.recompute));
  const DecoderOutcome expected = alone(config, batch, way.compute),
                       made = shared(config, batch, way);
  const bool rounded = way.compute == DType::bf16;
  CHECK(distance(made.logits.floats(), expected.logits.floats()) < (rounded ? 2e-2 : 1e-5));
  for (std::size_t i = 0; i < expected.sums.size(); ++i)
    CHECK(made.sums[i] == Approx(expected.sums[i]).epsilon(rounded ? 2e-2 : 1e-5));
  REQUIRE(made.gradients.size() == expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    INFO(name);
    CHECK(std::ranges::any_of(gradient.floats(), [](float g) { return std::abs(g) > 1e-6f; }));
    CHECK(distance(made.gradients.at(name).floats(), gradient.floats()) < (rounded ? 4e-2 : 1e-4));
  }
}

// The logits of each code of each video, and the codes of the first and the last stage.
struct WritingOutcome {
  std::vector<std::vector<std::vector<float>>> logits;
  std::vector<std::vector<std::int32_t>> first, last;
  std::int64_t elements = 0;  // of the parameters of the rank that has most

  bool operator==(const WritingOutcome& other) const {
    return logits == other.logits && first == other.first && last == other.last;
  }
};

// The videos of a pack are written at the same time. Of their codes every third is known to all.
WritingOutcome written(const DecoderConfig& config, const CodeBatch& batch, int tp, int pp,
                       DType compute) {
  WritingOutcome outcome;
  outcome.logits.resize(batch.samples.size());
  std::mutex mutex;
  dist::thread_worlds(tp * pp, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = tp, sizes.pp = pp;
    const Mesh mesh(world, sizes);
    const NetworkLayout layout = models::writing_layout(config, nn::layout_on_mesh(mesh));
    const CausalDecoder decoder(config, 1, compute, Device::cpu, true, layout);
    write_noise(decoder.parameters());
    std::deque<models::CodeWriter> writers;
    std::vector<std::size_t> begins;
    std::size_t begin = 0;
    std::int64_t text = 0, most = 0;
    for (const models::CodeSample& sample : batch.samples) {
      const bool reads = batch.text.defined();
      writers.emplace_back(decoder, sample,
                           reads ? batch.text.rows(text, text + sample.text_tokens) : Tensor());
      text += sample.text_tokens;
      begins.push_back(begin);
      begin += static_cast<std::size_t>(sample.codes());
      most = std::max(most, sample.codes());
    }
    std::vector<std::vector<std::vector<float>>> logits(writers.size());
    for (std::int64_t i = 0; i < most; ++i)
      for (std::size_t video = 0; video < writers.size(); ++video) {
        if (i >= batch.samples[video].codes()) continue;
        logits[video].push_back(writers[video].logits());
        const std::int32_t code = batch.codes[begins[video] + static_cast<std::size_t>(i)];
        if (i % 3 == 0)
          writers[video].write(code);
        else
          writers[video].write_drawn(layout.last_stage() ? code : 0);
      }
    std::vector<std::vector<std::int32_t>> codes;
    for (models::CodeWriter& writer : writers)
      codes.push_back(writer.codes());
    const std::lock_guard lock(mutex);
    outcome.elements = std::max(outcome.elements, nn::element_count(decoder.parameters()));
    if (layout.first_stage()) outcome.first = codes;
    if (!layout.last_stage()) return;
    outcome.last = codes;
    if (!outcome.logits[0].empty() && outcome.logits != logits)
      outcome.logits.clear();  // ranks of tp differ
    else
      outcome.logits = logits;
  });
  return outcome;
}

}  // namespace

TEST_CASE("ranks that write codes together get the logits of one rank, to the bit") {
  DecoderConfig text = uneven_decoder(6, 3), base = without_text(uneven_decoder(4, 2)),
                whole = uneven_decoder(4, 4);
  base.start_token = false;
  base.read_positions = text.read_positions = text.absolute_positions = true;
  base.stream_width = text.stream_width = 50;
  base.num_layers = text.num_layers = whole.num_layers = 5;
  struct Way {
    const DecoderConfig& config;
    int tp, pp;
  };
  for (const Way& way : {Way{text, 3, 1},
                         {base, 2, 1},
                         {whole, 4, 1},
                         {text, 1, 3},
                         {base, 1, 2},
                         {text, 3, 2},
                         {base, 2, 3},
                         {whole, 1, 5}})
    for (const DType compute : {DType::f32, DType::bf16}) {
      INFO("tp=" << way.tp << " pp=" << way.pp << ", " << dtype_name(compute));
      const CodeBatch batch = code_pack(way.config, code_samples());
      const WritingOutcome one = written(way.config, batch, 1, 1, compute),
                           many = written(way.config, batch, way.tp, way.pp, compute);
      REQUIRE(one.logits[0].size() == 18);
      CHECK(one.logits[0].back().size() == 13);
      CHECK(one.first[2] == std::vector(batch.codes.end() - 2, batch.codes.end()));
      CHECK(many == one);
      // Norms are on all ranks of a stage; a stage has up to two of five layers.
      CHECK(static_cast<double>(many.elements) < (way.pp == 1   ? 1.15 / way.tp
                                                  : way.tp == 1 ? 0.75
                                                                : 0.4) *
                                                     static_cast<double>(one.elements));
    }
}

TEST_CASE("ranks share a decoder's heads, widths and vocabulary") {
  const DecoderConfig two = uneven_decoder(4, 2), three = uneven_decoder(6, 3);
  compare(two, code_pack(two, code_samples()), {.tp = 2});
  compare(three, code_pack(three, code_samples()), {.tp = 3});
  compare(without_text(three), code_pack(without_text(three), code_samples()), {.tp = 3});
  compare(two, code_pack(two, code_samples()), {.tp = 2, .compute = DType::bf16});
}

// Those of Cosmos-1.0, whose streams are not as wide as their heads.
TEST_CASE("ranks share a decoder in each way that its tokens stand for codes") {
  DecoderConfig base = without_text(uneven_decoder(8, 4)), text = uneven_decoder(8, 4);
  base.start_token = false;
  base.read_positions = text.read_positions = text.absolute_positions = true;
  base.stream_width = text.stream_width = 50;
  for (const DecoderConfig& c : {base, text})
    for (const DecoderWay& way : {DecoderWay{.tp = 2, .cp = 2},
                                  {.tp = 2, .cp = 2, .kind = CpKind::all_to_all},
                                  {.tp = 4, .recompute = Recompute::block, .offload = true}})
      compare(c, code_pack(c, code_samples()), way);
}

TEST_CASE("ranks share a decoder's tokens, and gather their keys") {
  const DecoderConfig c = uneven_decoder(2, 1);
  compare(c, code_pack(c, code_samples()), {.cp = 2});
  compare(c, code_pack(c, code_samples()), {.cp = 3});
  compare(without_text(c), code_pack(without_text(c), {{3, 3, 3}}), {.cp = 4});
  compare(c, code_pack(c, code_samples()), {.cp = 2, .compute = DType::bf16});
}

TEST_CASE("ranks share a decoder's tokens, and exchange them for heads") {
  const DecoderConfig two = uneven_decoder(4, 2), three = uneven_decoder(6, 3);
  compare(two, code_pack(two, code_samples()), {.cp = 2, .kind = CpKind::all_to_all});
  compare(three, code_pack(three, code_samples()), {.cp = 3, .kind = CpKind::all_to_all});
  compare(without_text(two), code_pack(without_text(two), code_samples()),
          {.cp = 2, .kind = CpKind::all_to_all, .compute = DType::bf16});
}

TEST_CASE("ranks share all of a decoder, whatever is computed again") {
  const DecoderConfig c = uneven_decoder(8, 4);
  for (const CpKind kind : {CpKind::gather, CpKind::all_to_all})
    for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                      Recompute::block_but_attention, Recompute::block})
      compare(c, code_pack(c, code_samples()),
              {.tp = 2, .cp = 2, .kind = kind, .recompute = recompute});
  compare(c, code_pack(c, code_samples()),
          {.tp = 2, .cp = 2, .recompute = Recompute::block_but_attention, .offload = true});
  compare(c, code_pack(c, code_samples()),
          {.tp = 2, .cp = 2, .compute = DType::bf16, .recompute = Recompute::elementwise});
}

TEST_CASE("what ranks of a decoder send is what the formulas say") {
  struct Count {
    int tp, cp;
    CpKind kind;
  };
  for (const Count way : {Count{2, 2, CpKind::gather},
                          {2, 2, CpKind::all_to_all},
                          {3, 1, CpKind::gather},
                          {1, 3, CpKind::gather}}) {
    const DecoderConfig c = way.tp == 3 ? uneven_decoder(6, 3) : uneven_decoder(8, 4);
    const CodeBatch batch = code_pack(c, {{2, 4, 4, 3}});
    const std::int64_t t = way.tp, p = way.cp, width = c.width(), layers = c.num_layers;
    dist::thread_worlds(way.tp * way.cp, [&](dist::World& world) {
      dist::Layout sizes;
      sizes.tp = way.tp, sizes.cp = way.cp;
      const Mesh mesh(world, sizes);
      const NetworkLayout layout{&mesh.group(Axes::tp), &mesh.group(Axes::cp), way.kind};
      const CausalDecoder decoder(c, 1, DType::f32, Device::cpu, true, layout);
      const nn::TokenShard shard(lengths_of(batch), layout, Device::cpu, true);
      const std::int64_t here = ops::row_count(shard.sequence), own = ops::row_count(shard.own),
                         all = std::ssize(batch.codes);
      const auto sent = [&](const char* axis) { return world.traffic().of(axis).bytes; };
      // Before queries, keys and values, the text's queries, the MLP, the logits; and after.
      const std::int64_t gathers = 3 * layers + 1, sums = 3 * layers + 1;
      const std::int64_t gather = (t - 1) * own * width * 4, sum = (here - own) * width * 4;
      const std::int64_t heads = c.num_attention_heads * c.attention_head_dim / t,
                         keys = c.key_value_heads() * c.attention_head_dim / t;
      ops::Tape tape;
      const Tensor logits = decoder.forward(tape, batch);
      CHECK(sent("tp") == gathers * gather + sums * sum);
      std::int64_t forward = layers * (p - 1) * here * 2 * keys * 4,
                   backward = layers * (all - here) * 2 * keys * 4;
      if (way.kind == CpKind::all_to_all)  // here is all / p
        forward = backward = layers * (2 * heads + 2 * keys) * (p - 1) * here / p * 4;
      CHECK(sent("cp") == forward);
      world.traffic().reset();
      const models::CodeLoss loss = decoder.loss(logits, batch, batch.codes, 0, 1);
      CHECK(sent("tp") == (t - 1) * here * 2 * 4);
      world.traffic().reset();
      tape.backward(logits, loss.tokens.seed);
      CHECK(sent("tp") == gathers * sum + sums * gather);
      CHECK(sent("cp") == backward);
    });
  }
}

TEST_CASE("ranks of cp have all tokens of a causal pack among them, and as many keys to see") {
  const std::vector<std::int64_t> lengths = {240, 1, 97, 2, 33, 64, 5, 1, 1};
  for (const int cp : {2, 3, 4, 8}) {
    std::vector<int> owners(444);
    std::vector<double> keys(static_cast<std::size_t>(cp));
    std::vector<std::int64_t> rows(static_cast<std::size_t>(cp));
    std::mutex mutex;
    dist::thread_worlds(cp, [&](dist::World& world) {
      dist::Layout sizes;
      sizes.cp = cp;
      const Mesh mesh(world, sizes);
      const NetworkLayout layout{nullptr, &mesh.group(Axes::cp)};
      const nn::TokenShard shard(lengths, layout, Device::cpu, true);
      const std::lock_guard lock(mutex);
      std::int64_t begin = 0;
      const auto rank = static_cast<std::size_t>(world.rank());
      rows[rank] = ops::row_count(shard.sequence);
      for (std::size_t i = 0; i < shard.sequence.size(); ++i) {
        for (std::int64_t row = shard.sequence[i].begin; row < shard.sequence[i].end; ++row) {
          ++owners[static_cast<std::size_t>(row)];
          keys[rank] += static_cast<double>(row - begin + 1);
        }
        if (i % 2 == 1) begin += lengths[i / 2];
      }
    });
    CHECK(std::ranges::all_of(owners, [](int n) { return n == 1; }));
    const auto [fewest, most] = std::ranges::minmax(keys);
    CHECK(most < 1.05 * fewest);
    const auto [least, longest] = std::ranges::minmax(rows);
    CHECK(longest - least <= 2);
  }
}

TEST_CASE("a layout that a decoder cannot have is refused with the nearest one") {
  dist::thread_worlds(3, [](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = 3;
    const Mesh mesh(world, sizes);
    dist::Group& all = mesh.group(Axes::tp);
    const auto refused = [](const DecoderConfig& config, const NetworkLayout& layout,
                            const char* nearest) {
      CHECK_THROWS_WITH(CausalDecoder(config, 1, DType::f32, Device::cpu, true, layout),
                        Catch::Contains(nearest));
    };
    refused(uneven_decoder(4, 2), {&all, nullptr}, "the nearest is parallel.tp=2");
    refused(uneven_decoder(6, 2), {&all, nullptr},
            "2 heads of keys and values are not shared by 3 ranks");
    refused(uneven_decoder(4, 2), {nullptr, &all, CpKind::all_to_all},
            "parallel.cp_kind=gather can be");
    refused(uneven_decoder(6, 3), {nullptr, &all, CpKind::ring},
            "parallel.cp_kind=gather and all_to_all");
    DecoderConfig few = uneven_decoder(6, 3);
    few.vocabulary = 2;
    refused(few, {&all, nullptr}, "a vocabulary of 2 is not shared by 3 ranks");
    few = uneven_decoder(6, 3);
    few.mlp_ratio = 0.02;
    refused(few, {&all, nullptr}, "the nearest is parallel.tp=1");
    const DecoderConfig c = uneven_decoder(6, 3);
    const CausalDecoder decoder(c, 1, DType::f32, Device::cpu, true, {&all, nullptr});
    CHECK_THROWS_WITH(models::CodeWriter(decoder, {1, 1, 2, 1}, Tensor::zeros({1, 6})),
                      Catch::Contains("that one rank has"));
    ops::Tape silent(false);
    CHECK_THROWS_WITH(decoder.forward(silent, code_pack(c, {{1, 1, 2, 1}})),
                      Catch::Contains("too short"));
  });
}
