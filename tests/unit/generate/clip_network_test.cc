// Ranks that make a clip together: who they are, and the output of one rank's network.
// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_network.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "dist/threads.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/dit/fp8.h"
#include "models/moviegen/moviegen.h"
#include "ops/cpu/isa.h"
#include "support/clip_networks.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::generate;
using Catch::Contains;

namespace {

/// How far an output in FP8 is from that of one rank, whose FP8 changed it by `changed`; `change`:
/// the ranks' FP8. Instructions for bf16 round the weights of a ring's attention, too, and beside
/// the largest of each part. A ring's attention in FP8 rounds neither weights nor results to FP8,
/// so it changes less than that of one rank.
void check_shared_fp8(nn::CpKind kind, models::Fp8Parts parts, double apart, double changed,
                      double change) {
  const bool ring = kind == nn::CpKind::ring || kind == nn::CpKind::all_to_all_ring;
  if (ring && parts.attention) {
    CHECK(change < changed);
    CHECK(apart < 1.2 * changed);
    return;
  }
  CHECK(apart <= (!ring ? 1e-4 : ops::isa() >= ops::Isa::avx512_bf16 ? 4e-2 : 2e-2));
  CHECK(apart < 0.7 * changed);
}

/// What ranks that share it give for the batch, and what the one that leads sent for it.
struct Shared {
  Tensor output;
  dist::Traffic traffic;
  int gathered = 0;  ///< blocks at a time, the most
};
Shared shared_output(const models::NetworkConfig& config, dist::Layout parallel, nn::CpKind kind,
                     DType compute, models::Fp8Parts fp8, const models::NetworkBatch& batch,
                     std::optional<ops::RowFormat> quantized = {}) {
  Shared shared;
  parallel.cp_kind = kind, parallel.cp_heads = parallel.cp / 2;
  dist::thread_worlds(parallel.sharers(), [&](dist::World& world) {
    const ClipRanks ranks(world, parallel);
    nn::NetworkLayout layout = ranks.network();
    layout.quantized = quantized;
    const auto own = models::make_network(config, 1, compute, Device::cpu, false, layout);
    fill(*own);
    ClipNetwork clip(*own, ranks);
    if (fp8.any()) clip.set_fp8(fp8);
    if (!ranks.leads()) return clip.serve(nullptr);
    if (quantized) clip.quantize_all();
    world.traffic().reset();
    shared.output = clip.forward(batch);
    shared.traffic = world.traffic();
    if (ranks.network().blocks != nullptr)
      shared.gathered = ranks.network().blocks->most_gathered();
    clip.end();
  });
  return shared;
}

/// What the rank that leads sends for two samples in bf16, with parts in FP8 and without.
struct BothTraffics {
  dist::Traffic with, without;
};
BothTraffics both_traffics(const models::NetworkConfig& config, const char* parallel,
                           nn::CpKind kind, models::Fp8Parts fp8) {
  const models::NetworkBatch batch = guided(config, 2);
  const auto traffic = [&](models::Fp8Parts parts) {
    return shared_output(config, parse_parallel(parallel), kind, DType::bf16, parts, batch).traffic;
  };
  return {traffic(fp8), traffic({})};
}

}  // namespace

TEST_CASE("--parallel is read, and what cannot be is refused") {
  const dist::Layout all = parse_parallel("cfg=2,cp=4,tp=3,cp_kind=ring");
  CHECK_FALSE(all.hybrid);
  const dist::Layout frames = parse_parallel("cp=4,hybrid,cp_kind=gather,tp=2");
  CHECK(frames.hybrid);
  CHECK(clip_layout_name(frames) == "cp=4 gather hybrid tp=2");
  CHECK(clip_layout_name(parse_parallel(clip_layout_option(frames))) == clip_layout_name(frames));
  CHECK(all.cfg == 2);
  CHECK(all.cp == 4);
  CHECK(all.tp == 3);
  CHECK(all.sharers() == 24);
  CHECK(clip_layout_name(all) == "cfg=2 cp=4 ring tp=3");
  CHECK(clip_layout_name(parse_parallel("tp=2,pp=3")) == "pp=3 tp=2");
  CHECK(parse_parallel("tp=2,pp=3").sharers() == 6);
  CHECK(parse_parallel("").alone());
  CHECK(clip_layout_name(parse_parallel("")).empty());
  CHECK(clip_layout_name(parse_parallel(clip_layout_option(all))) == clip_layout_name(all));
  CHECK(parse_parallel("auto").choose == dist::Layout::kAllRanks);
  CHECK(parse_parallel("auto=8").choose == 8);
  for (const char* wrong : {"cfg=3",
                            "cp=0",
                            "cp=",
                            "cp",
                            "tp=x",
                            "tp=2x",
                            "dp=2",
                            "cp_kind=ring",
                            "cp=2,cp_kind=star",
                            "tp=-1",
                            "tp=99999999999",
                            "auto=0",
                            "auto=2,tp=2",
                            "auto,tp=2",
                            "cfg=2,auto=4",
                            "auto=2,cp_kind=ring",
                            "hybrid",
                            "tp=2,hybrid",
                            "auto=2,hybrid",
                            "cp=2,hybrid=2"})
    CHECK_THROWS_AS(parse_parallel(wrong), Error);
  CHECK_THAT(usage_error([] { check_ranks(parse_parallel("cfg=2"), 3); }),
             Contains("shares a clip among 2 ranks: start a multiple of that, not 3"));
}

TEST_CASE("ranks of a clip are neighbours: tp closest, then cp, the halves, and the clips") {
  std::mutex mutex;
  std::vector<std::string> seen(16);
  dist::thread_worlds(16, [&](dist::World& world) {
    const ClipRanks ranks(world, parse_parallel("cfg=2,cp=2,tp=2"));
    std::string text;
    for (dist::Group* const group : {&ranks.clip(), &ranks.half(), &ranks.halves(), &ranks.clips(),
                                     ranks.network().tp, ranks.network().cp}) {
      for (const int rank : group->ranks())
        text += std::to_string(rank) + " ";
      text += "| ";
    }
    const std::lock_guard lock(mutex);
    seen[static_cast<std::size_t>(world.rank())] = text + (ranks.leads() ? "leads" : "serves");
  });
  CHECK(seen[0] == "0 1 2 3 4 5 6 7 | 0 1 2 3 | 0 4 | 0 8 | 0 1 | 0 2 | leads");
  CHECK(seen[13] == "8 9 10 11 12 13 14 15 | 12 13 14 15 | 9 13 | 5 13 | 12 13 | 13 15 | serves");
}

TEST_CASE("ranks that share a network give the output of one, guided or not, each time the same") {
  for (const models::Architecture* type : {&models::kDit, &models::kStdit}) {
    const models::NetworkConfig config = network_of(type);
    const auto alone = models::make_network(config, 1, DType::f32, Device::cpu, false);
    fill(*alone);
    for (const std::string text : {"cfg=2", "tp=2", "cp=2", "cfg=2,cp=2,tp=2"})
      for (const std::size_t samples : {1, 2}) {
        INFO(type->name << " " << text << ", samples " << samples);
        const models::NetworkBatch batch = guided(config, samples);
        ops::Tape silent(false);
        const Tensor wanted = alone->forward(silent, batch);
        dist::Layout parallel = parse_parallel(text);
        parallel.cp_kind = type == &models::kStdit ? nn::CpKind::all_to_all : nn::CpKind::gather;
        std::vector<Tensor> got(2);
        for (Tensor& one : got)
          dist::thread_worlds(parallel.sharers(), [&](dist::World& world) {
            const ClipRanks ranks(world, parallel);
            const auto own =
                models::make_network(config, 1, DType::f32, Device::cpu, false, ranks.network());
            fill(*own);
            ClipNetwork clip(*own, ranks);
            if (!ranks.leads()) return clip.serve(nullptr);
            one = clip.forward(batch);
            one = clip.forward(batch);
            clip.end();
          });
        REQUIRE(got[0].elements() == wanted.elements());
        double apart = 0, size = 0;
        bool alike = true;
        for (std::int64_t i = 0; i < wanted.elements(); ++i) {
          apart = std::max(apart, std::abs(double{got[0].floats()[i]} - wanted.floats()[i]));
          size = std::max(size, std::abs(double{wanted.floats()[i]}));
          alike = alike && got[0].floats()[i] == got[1].floats()[i];
        }
        CHECK(size > 0.01);
        CHECK(apart < 1e-5 * size);
        CHECK(alike);
      }
  }
}

TEST_CASE("ranks that keep shards of the weights give the same bits, with two blocks at a time") {
  models::NetworkConfig config = network_of(&models::kDit);
  config.num_layers = 4;
  const models::NetworkBatch batch = guided(config, 2), unguided = guided(config, 1);
  for (const std::string text : {"cfg=2", "tp=2", "cp=2", "cfg=2,tp=2", "cp=2,tp=2"})
    for (const models::NetworkBatch* const one : {&batch, &unguided}) {
      INFO(text << ", samples " << one->samples.size());
      dist::Layout parallel = parse_parallel(text);
      const auto output = [&] {
        return shared_output(config, parallel, nn::CpKind::gather, DType::f32, {}, *one);
      };
      const Shared whole = output();
      parallel.shard = dist::ShardKind::full;
      const Shared shards = output();
      CHECK(apart_from(whole.output, shards.output) == 0);
      CHECK(whole.traffic.of("shard").bytes == 0);
      CHECK(shards.gathered == 2);
    }
}

TEST_CASE("a rank sends its shards of a block, once a pass, and half as much in FP8") {
  const models::NetworkConfig config = fp8_network();
  dist::Layout parallel = parse_parallel("cp=2");
  parallel.shard = dist::ShardKind::full;
  const models::NetworkBatch batch = guided(config, 2);
  const auto sent = [&](models::Fp8Parts fp8) {
    return shared_output(config, parallel, nn::CpKind::gather, DType::bf16, fp8, batch)
        .traffic.of("shard", dist::Operation::all_gather)
        .bytes;
  };
  // Of a block: queries, keys, values and outputs of two attentions, of which one reads text; the
  // MLP; and in f32 its modulation.
  const std::int64_t d = config.width(), text = config.text_embed_dim,
                     low = config.own<models::DitFields>().adaln_lora_dim;
  const std::int64_t products = 4 * d * d + 2 * d * d + 2 * d * text + 8 * d * d;
  const std::int64_t modulation = 3 * 4 * (low * d + 3 * d * low);
  CHECK(sent({}) == config.num_layers * (2 * products + modulation) / 2);
  CHECK(sent({.linear = true}) == config.num_layers * (products + modulation) / 2);
}

TEST_CASE("weights in 8 bits of ranks that share a clip are those of one rank") {
  for (const models::Architecture* type : {&models::kDit, &models::kStdit, &models::kMovieGen})
    for (const ops::RowFormat format : {ops::RowFormat::int8, ops::RowFormat::e4m3}) {
      const models::NetworkConfig config = network_of(type);
      const models::NetworkBatch batch = guided(config, 2);
      const auto output = [&](dist::Layout parallel, bool shard,
                              std::optional<ops::RowFormat> quantized) {
        if (shard) parallel.shard = dist::ShardKind::full;
        return shared_output(config, parallel, nn::CpKind::all_to_all, DType::f32, {}, batch,
                             quantized);
      };
      const Tensor whole = output({}, false, {}).output, one = output({}, false, format).output;
      const double change = apart_from(whole, one);
      INFO(type->name << " " << ops::row_format_name(format) << ": " << change);
      CHECK(change > 1e-4);
      CHECK(change < (format == ops::RowFormat::int8 ? 0.03 : 0.1));
      CHECK(models::output_change(whole, one) == Approx(change).epsilon(1e-9));
      for (const std::string text : {"cfg=2", "tp=2", "cp=2,tp=2"}) {
        const dist::Layout parallel = parse_parallel(text);
        const Tensor many = output(parallel, false, format).output;
        CHECK(apart_from(one, many) < 1e-5);
        CHECK(apart_from(many, output(parallel, true, format).output) == 0);
      }
    }
}

TEST_CASE("shards of weights in 8 bits travel so") {
  const models::NetworkConfig config = network_of(&models::kDit);
  dist::Layout parallel = parse_parallel("cp=2");
  parallel.shard = dist::ShardKind::full;
  const auto sent = [&](std::optional<ops::RowFormat> quantized) {
    return shared_output(config, parallel, nn::CpKind::gather, DType::f32, {}, guided(config, 2),
                         quantized)
        .traffic.of("shard", dist::Operation::all_gather)
        .bytes;
  };
  const std::int64_t d = config.width();
  const std::int64_t products =
      (4 + 2) * d * d + 2 * d * config.text_embed_dim + 2 * d * config.hidden();
  const auto block = static_cast<std::int64_t>(sent({})) / config.num_layers;
  CHECK(sent(ops::RowFormat::int8) == config.num_layers * (block - 3 * products / 2));
}

TEST_CASE("FP8 of ranks that share a clip is that of one rank") {
  const models::NetworkConfig config = fp8_network();
  for (const std::size_t samples : {1, 2})
    for (const models::Fp8Parts parts : {models::Fp8Parts{true, false}, {true, true}}) {
      const models::NetworkBatch batch = guided(config, samples);
      const auto alone = models::make_network(config, 1, DType::bf16, Device::cpu, false);
      fill(*alone);
      ops::Tape silent(false);
      const Tensor without = alone->forward(silent, batch);
      alone->set_inference_fp8(parts);
      const Tensor wanted = alone->forward(silent, batch);
      const double changed = apart_from(without, wanted);
      REQUIRE(changed > 1e-2);
      // Shards with the halves of guidance, which have to be computed then without guidance, too.
      for (const std::string text :
           {"cfg=2", "cp=2,cp_kind=all_to_all", "tp=2", "cp=2,cp_kind=gather", "cp=2,cp_kind=ring",
            "cp=4,cp_kind=all_to_all+ring", "cp=2,tp=2,cp_kind=ring"}) {
        if (samples == 1 && text != "cfg=2") continue;
        INFO(text << ", attention " << parts.attention << ", samples " << samples);
        dist::Layout parallel = parse_parallel(text);
        if (parallel.cfg == 2) parallel.shard = dist::ShardKind::full;
        const nn::CpKind kind = parallel.cp > 1 ? parallel.cp_kind : nn::CpKind::all_to_all;
        const Shared shared = shared_output(config, parallel, kind, DType::bf16, parts, batch);
        const double apart = apart_from(wanted, shared.output);
        // All ranks round with one scale, so numbers differ in the last bit of f32 alone: where
        // products have other numbers of rows, and where summands or parts of attention are added.
        // Where such a bit decides a rounding to bf16, that is 2^-9, and where that decides one to
        // FP8, a step of 2^-3. The next matrix spreads it over all numbers, of which some are
        // rounded otherwise again: in the end that is up to two thirds of what FP8 itself changes.
        // In a ring, whose parts are f32 until they are one, it takes a rare flip, of which this
        // batch has one.
        check_shared_fp8(kind, parts, apart, changed, apart_from(without, shared.output));
      }
    }
}

TEST_CASE("FP8 of ranks that share an ST-DiT is that of one rank, in a hybrid of any kind, too") {
  const models::NetworkConfig config = fp8_network(&models::kStdit);
  const models::NetworkBatch batch = guided(config, 2);
  for (const models::Fp8Parts parts : {models::Fp8Parts{true, false}, {true, true}}) {
    const auto alone = models::make_network(config, 1, DType::bf16, Device::cpu, false);
    fill(*alone);
    ops::Tape silent(false);
    const Tensor without = alone->forward(silent, batch);
    alone->set_inference_fp8(parts);
    const Tensor wanted = alone->forward(silent, batch);
    const double changed = apart_from(without, wanted);
    REQUIRE(changed > 1e-2);
    for (const std::string text :
         {"cp=2", "tp=2", "cp=2,cp_kind=gather,hybrid", "cp=2,cp_kind=all_to_all,hybrid",
          "cp=2,cp_kind=ring,hybrid", "cp=4,cp_kind=all_to_all+ring,hybrid",
          "cp=2,tp=2,cp_kind=gather,hybrid", "cfg=2,cp=4,cp_kind=ring,hybrid"}) {
      dist::Layout parallel = parse_parallel(text);
      if (parallel.cfg == 2)
        parallel.shard = dist::ShardKind::full;  // whose halves have three frames for four ranks
      const nn::CpKind kind =
          parallel.cp_kind == nn::CpKind::automatic ? nn::CpKind::all_to_all : parallel.cp_kind;
      const Tensor got = shared_output(config, parallel, kind, DType::bf16, parts, batch).output;
      const double apart = apart_from(wanted, got);
      INFO(text << ", attention " << parts.attention << ": " << apart);
      check_shared_fp8(kind, parts, apart, changed, apart_from(without, got));
    }
  }
}

TEST_CASE(
    "in FP8 what a hybrid moves to ranks with whole pixels is FP8, and what comes back bf16") {
  const models::NetworkConfig config = fp8_network(&models::kStdit);
  models::NetworkBatch batch = guided(config, 1);           // of two each rank would keep one
  batch.samples[0].frames = 2, batch.samples[0].width = 8;  // even parts, so ways are alike
  batch.latents = noise_tensor({config.in_channels * 64}, 1);
  const auto moved = [&](const char* text, models::Fp8Parts fp8) {
    return shared_output(config, parse_parallel(text), nn::CpKind::gather, DType::bf16, fp8, batch)
        .traffic.of("cp", dist::Operation::all_to_all);
  };
  const dist::Traffic::Count without = moved("cp=2,hybrid", {}),
                             with = moved("cp=2,hybrid", {.linear = true});
  CHECK(without.calls == 2 * config.num_layers);
  CHECK(with.calls == without.calls);
  CHECK(without.bytes > 0);
  CHECK(4 * with.bytes == 3 * without.bytes);
  // With tp it comes back in f32, as it was summed.
  const dist::Traffic::Count cut = moved("cp=2,tp=2,hybrid", {}),
                             cut_low = moved("cp=2,tp=2,hybrid", {.linear = true});
  CHECK(cut.bytes > 0);
  CHECK(4 * cut_low.bytes == (1 + 4) * cut.bytes);
}

TEST_CASE("in FP8 what goes into a matrix travels as FP8, and a scale is agreed on for each") {
  const models::NetworkConfig config = fp8_network();
  const BothTraffics sent = both_traffics(config, "tp=2", nn::CpKind::gather, {.linear = true});
  const auto gathered = [](const dist::Traffic& of) {
    return of.of("tp", dist::Operation::all_gather).bytes;
  };
  CHECK(gathered(sent.without) > 0);
  CHECK(2 * gathered(sent.with) == gathered(sent.without));
  // Summands of the results travel in f32.
  const auto summed = [](const dist::Traffic& of) {
    return of.of("tp", dist::Operation::reduce_scatter).bytes;
  };
  CHECK(summed(sent.without) > 0);
  CHECK(summed(sent.with) == 2 * summed(sent.without));
  // Two attentions of three and four products each, and the MLP's two.
  const dist::Traffic::Count scales = sent.with.of("clip", dist::Operation::all_gather);
  CHECK(scales == dist::Traffic::Count{7 * config.num_layers, 4 * 7 * config.num_layers});
}

TEST_CASE("queries, keys and values travel as FP8 where attention is FP8") {
  const models::NetworkConfig config = fp8_network();
  const BothTraffics sent =
      both_traffics(config, "cp=2", nn::CpKind::all_to_all, {.attention = true});
  const auto moved = [](const dist::Traffic& of) {
    return of.of("cp", dist::Operation::all_to_all).bytes;
  };
  // Queries, keys, values and results.
  CHECK(moved(sent.without) > 0);
  CHECK(2 * moved(sent.with) == moved(sent.without));
  // And a number for each of three kinds.
  const dist::Traffic::Count scales = sent.with.of("clip", dist::Operation::all_gather);
  CHECK(scales == dist::Traffic::Count{config.num_layers, config.num_layers * 4 * 3});
}

TEST_CASE("keys and values travel as FP8 in a ring, and where they are gathered") {
  const models::NetworkConfig config = fp8_network();
  for (const nn::CpKind kind : {nn::CpKind::gather, nn::CpKind::ring}) {
    const BothTraffics sent = both_traffics(config, "cp=2", kind, {.attention = true});
    INFO(nn::cp_kind_name(kind));
    CHECK(sent.without.of("cp").bytes > 0);
    CHECK(2 * sent.with.of("cp").bytes == sent.without.of("cp").bytes);
    // Two samples of 18 tokens, of which this rank sends a half: keys and values of two heads.
    CHECK(sent.with.of("cp").bytes == config.num_layers * 18 * 2 * 2 * 64);
  }
  const BothTraffics mixed =
      both_traffics(config, "cp=4", nn::CpKind::all_to_all_ring, {.attention = true});
  CHECK(mixed.without.of("cp_ring").bytes > 0);
  CHECK(2 * mixed.with.of("cp_ring").bytes == mixed.without.of("cp_ring").bytes);
  // Results of a ring come back to their tokens in bf16.
  CHECK(8 * mixed.with.of("cp_heads").bytes == 5 * mixed.without.of("cp_heads").bytes);
}
