// A training has the same loss and gradients on every layout: vfm-train's own proof of it, among
// threads.
// SPDX-License-Identifier: Apache-2.0
#include "train/check/check_parallel.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "parallel_cases.h"
#include "support/usage_error.h"
#include "train/step/parallel.h"

using namespace vfm;
using namespace vfm::train;

namespace {

const std::string kFullAdaln = "model.adaln: full\nmodel.adaln_lora_dim: 0\n";
const std::string kQkNorm = "model.qk_norm: true\n";

const std::vector<ParallelCase> kCases = {
    {"dit", 2, "parallel: {tp: 2}"},
    {"dit", 2, "parallel: {cp: 2, cp_kind: gather}"},
    {"dit", 2, "parallel: {cp: 2, cp_kind: all_to_all}"},
    {"dit", 2, ""},
    {"dit", 3, "parallel: {cp: 3, cp_kind: gather}\ndata: {packs: 3, micro_packs: 1}"},
    {"dit", 3, "parallel: {cp: 3, cp_kind: ring}"},
    {"dit", 4, "parallel: {cp: 4, cp_kind: all_to_all+ring}\nmodel: {recompute: block}"},
    {"dit", 4, "parallel: {tp: 2, cp: 2, cp_kind: ring}\nmodel: {compute: bf16}"},
    {"dit", 4, "parallel: {cp: 4, cp_kind: all_to_all+ring}", Samples::mixed, 2},
    {"dit", 4, "parallel: {tp: 4}", Samples::one_a_pack},
    {"dit", 4, "parallel: {tp: 2, cp: 2, cp_kind: gather}\nmodel: {recompute: elementwise}"},
    {"dit", 4, "parallel: {tp: 2, cp: 2, cp_kind: all_to_all}", Samples::one_a_pack},
    {"dit", 4, "parallel: {tp: 2}\nmodel: {recompute: block}"},
    {"dit", 4, "parallel: {cp: 2}\ndata: {packs: 3}"},
    {"dit", 8, "parallel: {tp: 2, cp: 2}"},
    {"dit", 4, "parallel: {tp: 2, reduce: bf16}"},
    {"dit", 2, "parallel: {tp: 2}\nmodel: {compute: bf16}"},
    {"dit", 4, "parallel: {tp: 2, cp: 2, cp_kind: all_to_all}\nmodel: {compute: bf16}"},
    {"dit", 4, "parallel: {tp: 2, cp: 2}", Samples::mixed, 2},
    {"dit", 4, "parallel: {tp: 2}\nmodel: {compute: bf16}", Samples::mixed, 2},
    {"dit", 2, "parallel: {pp: 2}\nmodel: {num_layers: 3}"},
    {"dit", 4, "parallel: {pp: 2, tp: 2}\nmodel: {num_layers: 2}\ndata: {packs: 4}"},
    {"dit", 4, "parallel: {pp: 2, cp: 2, cp_kind: gather}\nmodel: {num_layers: 2}"},
    {"dit", 4, "parallel: {pp: 2}\nmodel: {num_layers: 4, recompute: block}\ndata: {packs: 5}"},
    {"dit", 3, "parallel: {pp: 3, stages: [1, 2, 1]}\nmodel: {num_layers: 4, compute: bf16}"},
    {"dit", 2, "parallel: {pp: 2}\nmodel: {num_layers: 2}", Samples::mixed, 2},
    {"dit", 2, "parallel: {pp: 2, vpp: 2}\nmodel: {num_layers: 5}\ndata: {packs: 3}"},
    {"stdit", 2, "parallel: {pp: 2}\nmodel: {num_layers: 2, recompute: elementwise}"},
    {"moviegen", 2, "parallel: {pp: 2}\nmodel: {num_layers: 2}"},
    {"moviegen", 4, "parallel: {pp: 2, vpp: 2, tp: 2}\nmodel: {num_layers: 4}\ndata: {packs: 4}"},
    {"dit", 8, "parallel: {pp: 2, shard: optimizer, tp: 2}\nmodel: {num_layers: 2}"},
    {"dit", 6, "parallel: {pp: 3, shard: optimizer, reduce: bf16}\nmodel: {num_layers: 3}"},
    {"dit", 8,
     "parallel: {pp: 2, cp: 2, cp_kind: gather, shard: full}\n"
     "model: {num_layers: 2, compute: bf16, recompute: block}\ndata: {packs: 3}"},
    {"dit", 4,
     "parallel: {pp: 2, vpp: 2, shard: full}\nmodel: {num_layers: 5, recompute: elementwise}\n"
     "data: {packs: 5}"},
    {"dit", 4, "parallel: {pp: 2, shard: full}\nmodel: {num_layers: 2}", Samples::mixed, 2},
    {"stdit", 8, "parallel: {pp: 2, cp: 2, hybrid: true, shard: full}\nmodel: {num_layers: 2}"},
    {"moviegen", 8,
     "parallel: {pp: 2, shard: full, replicate: 2}\nmodel: {num_layers: 2}\ndata: {packs: 6}"},
    {"moviegen", 8,
     "parallel: {pp: 2, shard: optimizer, replicate: 2}\nmodel: {num_layers: 2}\n"
     "data: {packs: 4}"},
    {"autoregressive", 8, "parallel: {pp: 2, tp: 2, shard: full}\nmodel: {num_layers: 2}"},
    {"dit", 2, "parallel: {shard: optimizer}"},
    {"dit", 3, "parallel: {shard: optimizer, cp: 3, cp_kind: gather}\nmodel: {compute: bf16}"},
    {"dit", 4, "parallel: {shard: optimizer, tp: 2}\nmodel: {recompute: block}"},
    {"dit", 4, "parallel: {shard: optimizer, tp: 2, reduce: bf16}", Samples::mixed, 2},
    {"dit", 2, "parallel: {shard: full}\nmodel: {num_layers: 3}"},
    {"dit", 3, "parallel: {shard: full, cp: 3, cp_kind: ring}\nmodel: {recompute: elementwise}"},
    {"dit", 4, "parallel: {shard: full, tp: 2}\nmodel: {recompute: block, compute: bf16}"},
    {"dit", 4, "parallel: {shard: full, tp: 2}\ndata: {packs: 3}", Samples::mixed, 2},
    {"dit", 2, "parallel: {shard: full, reduce: bf16}\nmodel: {recompute: block_but_attention}"},
    {"stdit", 4, "parallel: {shard: full, cp: 2, cp_kind: all_to_all}\nmodel: {recompute: block}"},
    {"moviegen", 4, "parallel: {shard: full, replicate: 2}\ndata: {packs: 4}"},
    {"moviegen", 3, "parallel: {shard: full, reshard: false}\ndata: {packs: 4, micro_packs: 1}"},
    {"autoregressive", 4, "parallel: {shard: full, tp: 2}\nmodel: {recompute: block}"},
    {"autoregressive", 2, "parallel: {shard: full}\nmodel: {recompute: elementwise}"},
    {"stdit", 4, "parallel: {shard: optimizer, cp: 2, cp_kind: all_to_all}"},
    {"moviegen", 4, "parallel: {shard: optimizer, replicate: 2}\ndata: {packs: 4}"},
    {"autoregressive", 4, "parallel: {shard: optimizer, tp: 2}"},
    {"stdit", 2, "parallel: {tp: 2}"},
    {"stdit", 2, "parallel: {cp: 2, cp_kind: all_to_all}"},
    {"stdit", 8, "parallel: {tp: 2, cp: 2, cp_kind: all_to_all}"},
    {"stdit", 4, "parallel: {tp: 2}\nmodel: {compute: bf16}", Samples::one_a_pack},
    {"stdit", 2, "parallel: {tp: 2}", Samples::images},
    {"stdit", 2, "parallel: {cp: 2, cp_kind: ring, hybrid: true}"},
    {"stdit", 3, "parallel: {cp: 3, hybrid: true}\ndata: {packs: 3, micro_packs: 1}"},
    {"stdit", 4, "parallel: {cp: 2, cp_kind: gather, hybrid: true}\nmodel: {recompute: block}"},
    {"stdit", 8, "parallel: {tp: 2, cp: 2, cp_kind: all_to_all, hybrid: true}"},
    {"stdit", 4, "parallel: {tp: 2, cp: 2, hybrid: true}\nmodel: {compute: bf16}", Samples::mixed,
     2},
    {"stdit", 4, "parallel: {cp: 4, hybrid: true}", Samples::one_a_pack},
    {"stdit", 4, "parallel: {cp: 4, hybrid: true, shard: full}", Samples::one_a_pack},
    {"stdit", 4, "parallel: {tp: 2, cp: 2, hybrid: true, shard: full}\nmodel: {recompute: block}"},
    {"stdit", 4, "parallel: {tp: 2, cp: 2, cp_kind: gather, hybrid: true, shard: optimizer}"},
    {"stdit", 2, "parallel: {cp: 2, cp_kind: ring, hybrid: true}", Samples::images},
    {"dit", 2, "parallel: {tp: 2}\ndiffusion: {text_dropout: 1}"},
    {"moviegen", 2, "parallel: {tp: 2}\ndiffusion: {text_dropout: 1}"},
    {"moviegen", 2, "parallel: {tp: 2}"},
    {"moviegen", 2, "parallel: {cp: 2, cp_kind: all_to_all}", Samples::one_a_pack},
    {"moviegen", 4, "parallel: {tp: 2, cp: 2, cp_kind: gather}\nmodel: {compute: bf16}"},
    {"moviegen", 8, "parallel: {tp: 2, cp: 2, cp_kind: gather}"},
    {"moviegen", 2, "parallel: {cp: 2, cp_kind: ring}", Samples::one_a_pack},
    {"moviegen", 8, "parallel: {cp: 4, cp_kind: all_to_all+ring}"},
    {"moviegen", 4, "parallel: {tp: 2}", Samples::one_a_pack, 3},
    {"dit", 4, kFullAdaln + "parallel: {tp: 2, cp: 2}\nmodel: {compute: bf16}"},
    {"dit", 4, kFullAdaln + "parallel: {pp: 2, shard: full}\nmodel: {num_layers: 2}"},
    {"dit", 2, kFullAdaln + "parallel: {shard: full}\nmodel: {recompute: block}", Samples::mixed,
     2},
    {"stdit", 4, kFullAdaln + "parallel: {tp: 2, cp: 2, hybrid: true}"},
    {"moviegen", 4, kQkNorm + "parallel: {tp: 2, cp: 2, cp_kind: all_to_all}"},
    {"moviegen", 2, kQkNorm + "parallel: {tp: 2}\nmodel: {compute: bf16}"},
    {"moviegen", 2, kQkNorm + "parallel: {cp: 2, cp_kind: ring}", Samples::one_a_pack},
    {"moviegen", 4, kQkNorm + "parallel: {pp: 2, shard: full}\nmodel: {num_layers: 2}"},
    {"autoregressive", 2, "parallel: {pp: 2}\nmodel: {num_layers: 3}"},
    {"autoregressive", 8,
     "parallel: {pp: 2, tp: 2, cp: 2, cp_kind: gather}\n"
     "model: {num_layers: 2, width: 50, start_token: false, read_positions: true}"},
    {"autoregressive", 4,
     "parallel: {pp: 2, shard: full}\n"
     "model: {num_layers: 2, width: 50, read_positions: true, absolute_positions: true}"},
    {"autoregressive", 8,
     "parallel: {pp: 2, vpp: 2, tp: 2, tp_chunks: 2, shard: full, replicate: 2}\n"
     "model: {num_layers: 4, compute: bf16}\ndata: {packs: 4}",
     Samples::mixed, 2},
    {"autoregressive", 4,
     "parallel: {cp: 2, cp_kind: gather, shard: optimizer}\nmodel: {compute: bf16}", Samples::mixed,
     2},
    {"autoregressive", 8,
     "parallel: {pp: 2, tp: 2, cp: 2, cp_kind: gather}\nmodel: {num_layers: 2}"},
    {"autoregressive", 4,
     "parallel: {pp: 2, vpp: 2}\nmodel: {num_layers: 4, recompute: block, compute: bf16}"},
    {"autoregressive", 2, "parallel: {tp: 2}"},
    {"autoregressive", 2, "parallel: {cp: 2, cp_kind: gather}"},
    {"autoregressive", 8, "parallel: {tp: 2, cp: 2, cp_kind: all_to_all}"},
    {"autoregressive", 4, "parallel: {tp: 2, cp: 2}\nmodel: {compute: bf16}"},
    {"dit", 8,
     "parallel: {tp: 2, shard: full, replicate: 2}\nmodel: {compute: bf16}\ndata: {packs: 4}",
     Samples::mixed, 2},
    {"stdit", 8,
     "parallel: {cp: 2, hybrid: true, shard: optimizer, replicate: 2}\ndata: {packs: 4}"},
    {"autoregressive", 4, "parallel: {shard: full, replicate: 2}\ndata: {packs: 4}"},
    {"dit", 8,
     "parallel: {pp: 2, vpp: 2, shard: optimizer, replicate: 2}\nmodel: {num_layers: 4}\n"
     "data: {packs: 4}"},
    {"stdit", 4,
     "parallel: {pp: 2, vpp: 2, cp: 2, cp_kind: gather, hybrid: true}\nmodel: {num_layers: 4}",
     Samples::mixed, 2},
    {"dit", 8,
     "parallel: {tp: 2, tp_chunks: 4, shard: full, replicate: 2}\nmodel: {compute: bf16}\n"
     "data: {packs: 4}",
     Samples::mixed, 2},
    {"dit", 4, "parallel: {tp: 4, tp_chunks: 7}\nmodel: {recompute: elementwise}",
     Samples::one_a_pack},
    {"dit", 2, "parallel: {tp: 2, tp_chunks: 2}\nmodel: {recompute: block}"},
    {"stdit", 8,
     "parallel: {tp: 2, tp_chunks: 2, cp: 2, hybrid: true, shard: optimizer}\n"
     "model: {recompute: elementwise}"},
    {"moviegen", 4,
     "parallel: {pp: 2, vpp: 2, tp: 2, tp_chunks: 4}\n"
     "model: {num_layers: 4, recompute: elementwise}\ndata: {packs: 4}"},
    {"autoregressive", 2, "parallel: {tp: 2, tp_chunks: 2}\nmodel: {compute: bf16}"},
    {"autoregressive", 2, "parallel: {tp: 2, tp_chunks: 4}\nmodel: {recompute: elementwise}"},
    // Whole matrices move.
    {"dit", 2, "parallel: {tp: 2}\noptimizer: {kind: muon}"},
    {"dit", 4, "parallel: {tp: 2, shard: full}\noptimizer: {kind: muon}\nmodel: {num_layers: 2}"},
    {"dit", 3, "parallel: {shard: optimizer}\noptimizer: {kind: muon, moments: bf16}"},
    {"stdit", 8,
     "parallel: {pp: 2, tp: 2, shard: full, replicate: 2}\noptimizer: {kind: muon}\n"
     "model: {num_layers: 2, compute: bf16}\ndata: {packs: 4}"},
    {"moviegen", 4, "parallel: {tp: 2, cp: 2, cp_kind: gather}\noptimizer: {kind: muon}"},
    {"autoregressive", 6,
     "parallel: {pp: 2, shard: full, cp: 3, cp_kind: gather}\noptimizer: {kind: muon}\n"
     "model: {num_layers: 2}"},
    // Blocks of moments lie on several ranks.
    {"dit", 4,
     "parallel: {tp: 2, shard: full}\noptimizer: {moments: 8bit}\nmodel: {num_layers: 2}"},
    {"dit", 3, "parallel: {shard: optimizer}\noptimizer: {moments: 8bit}", Samples::mixed, 2},
    {"stdit", 8,
     "parallel: {pp: 2, tp: 2, shard: full, replicate: 2}\noptimizer: {moments: 8bit}\n"
     "model: {num_layers: 2, compute: bf16}\ndata: {packs: 4}"},
    {"moviegen", 4,
     "parallel: {tp: 2, cp: 2, cp_kind: gather}\noptimizer: {kind: muon, moments: 8bit}"},
    {"autoregressive", 2, "parallel: {tp: 2}\noptimizer: {moments: 8bit}"},
    // Fewer packs than ranks that have some.
    {"dit", 3, "data: {packs: 2}"},
    {"dit", 4,
     "parallel: {tp: 2, tp_chunks: 2}\nmodel: {compute: bf16, recompute: block}\n"
     "data: {packs: 1}",
     Samples::mixed, 2},
    {"dit", 3,
     "parallel: {shard: full}\nmodel: {num_layers: 3, recompute: block}\n"
     "data: {packs: 2}"},
    {"dit", 3, "parallel: {shard: full, reshard: false}\ndata: {packs: 1}"},
    {"stdit", 8,
     "parallel: {pp: 2, vpp: 2, cp: 2, hybrid: true, shard: optimizer}\n"
     "model: {num_layers: 4}\ndata: {packs: 1}"},
    {"stdit", 6, "parallel: {pp: 2, shard: full}\nmodel: {num_layers: 2}\ndata: {packs: 2}"},
    {"moviegen", 4, "parallel: {shard: full, replicate: 2}\ndata: {packs: 3}"},
    {"moviegen", 4, "parallel: {shard: optimizer, replicate: 2}\ndata: {packs: 1}"},
    {"autoregressive", 8,
     "parallel: {pp: 2, vpp: 2, tp: 2}\nmodel: {num_layers: 4}\ndata: {packs: 1}"},
    {"autoregressive", 3, "parallel: {shard: full, reduce: bf16}\ndata: {packs: 2}"},
};

/// What a layout has, each of which must meet each other one in some case.
std::set<std::string> features_of(const ParallelCase& one) {
  const Recipe recipe = recipe_of(one);
  const dist::Layout& parallel = recipe.parallel;
  std::set<std::string> features = {one.type};
  const auto add = [&](bool has, const char* name) {
    if (has) features.insert(name);
  };
  add(parallel.tp > 1, "tp");
  add(parallel.chunks() > 1, "tp_chunks");
  add(parallel.cp > 1, "cp");
  add(parallel.pp > 1, "pp");
  add(parallel.vpp > 1, "vpp");
  add(one.ranks > parallel.sharers(), "dp");
  add(parallel.shard == ShardKind::optimizer, "shard=optimizer");
  add(parallel.shard == ShardKind::full, "shard=full");
  add(parallel.replicate > 1, "replicate");
  add(parallel.hybrid, "hybrid");
  add(recipe.lora.rank > 0, "adapters");
  add(recipe.compute() == DType::bf16, "bf16");
  add(idle_data_ranks(recipe, one.ranks) > 0, "idle");
  return features;
}

using Pair = std::pair<std::string, std::string>;

/// Pairs that no run has: each by its two names, of which the first is the smaller.
std::set<Pair> pairs_that_cannot_be() {
  std::set<Pair> none;
  const auto exclude = [&](const std::vector<std::string>& some,
                           const std::vector<std::string>& others) {
    for (const std::string& a : some)
      for (const std::string& b : others)
        if (a != b) none.emplace(std::min(a, b), std::max(a, b));
  };
  const std::vector<std::string> types = {"autoregressive", "dit", "moviegen", "stdit"};
  exclude(types, types);
  exclude({"shard=optimizer"}, {"shard=full"});
  exclude({"hybrid"}, {"autoregressive", "dit", "moviegen"});  // frames and pixels are stdit's
  return none;
}

/// Each of `step` cases against one rank.
void compare_each(std::size_t step) {
  for (std::size_t i = 0; i < kCases.size(); i += step) {
    const ParallelCase& one = kCases[i];
    const ParallelCheck check = check_case(one);
    INFO(one.type << " on " << one.ranks << " ranks, " << one.settings << "\n" << check.words());
    CHECK(check.passed);
    CHECK(check.values.size() > 10);
    // Besides the gradients: the norm of all, a clipped update, and the average after it.
    for (const char* name :
         {"loss", "gradient norm", "update", "average", "loss of step 2", "gradient norm of step 4",
          "update of steps 2 to 4", "average of steps 2 to 4", "validation"}) {
      const auto value = std::ranges::find(check.values, name, &ComparedValue::name);
      REQUIRE(value != check.values.end());
      CHECK(value->together > 0);
    }
  }
}

/// A Wan on each of `step` layouts.
void compare_wan(std::size_t step) {
  const std::vector<std::pair<int, std::string>> layouts = {
      {2, "parallel: {tp: 2}\nmodel: {recompute: none}"},
      {2, "parallel: {cp: 2, cp_kind: ring}\nmodel: {recompute: auto}"},
      {4, "parallel: {tp: 2, cp: 2, cp_kind: gather}\nmodel: {recompute: elementwise}"},
      {4, "parallel: {pp: 2, shard: full}\nmodel: {recompute: elementwise, num_layers: 2}"},
      {2, "parallel: {tp: 2, tp_chunks: 2}\nmodel: {recompute: block_but_attention}"},
      {2, "parallel: {cp: 2, cp_kind: ring}\nmodel: {recompute: block_but_attention}"},
      {4,
       "parallel: {pp: 2, shard: optimizer}\n"
       "model: {recompute: block_but_attention, num_layers: 2}"},
      {4,
       "parallel: {tp: 2, shard: full}\n"
       "model: {recompute: block_but_attention, num_layers: 3, compute: bf16}"},
      {4, "parallel: {tp: 2, cp: 2, cp_kind: ring}\nmodel: {recompute: block}"},
      {4,
       "parallel: {pp: 2, cp: 2, cp_kind: all_to_all}\n"
       "model: {recompute: block, num_layers: 2}"},
      {2, "parallel: {shard: full}\nmodel: {recompute: block, num_layers: 2}"}};
  for (std::size_t i = 0; i < layouts.size(); i += step) {
    const auto& [ranks, settings] = layouts[i];
    const ParallelCheck check = check_case({"wan", ranks, settings});
    INFO(settings << "\n" << check.words());
    CHECK(check.passed);
  }
}

}  // namespace

TEST_CASE("check parallel: every sixth layout has the loss and the gradients of one rank") {
  compare_each(6);
}

TEST_CASE("check parallel: every layout has the loss and the gradients of one rank", "[nightly]") {
  compare_each(1);
}

TEST_CASE("check parallel: each two things that a layout can have meet in some case") {
  std::set<std::string> all;
  std::set<Pair> met;
  for (const ParallelCase& one : kCases) {
    const std::set<std::string> features = features_of(one);
    all.insert(features.begin(), features.end());
    for (const std::string& a : features)
      for (const std::string& b : features)
        if (a < b) met.emplace(a, b);
  }
  CHECK(all.size() == 17);
  const std::set<Pair> excluded = pairs_that_cannot_be();
  for (const std::string& a : all)
    for (const std::string& b : all) {
      INFO(a << " and " << b);
      if (a < b) CHECK(met.contains({a, b}) != excluded.contains({a, b}));
    }
}

TEST_CASE("check parallel: what the samples leave no gradient is said, and nothing else") {
  const auto without = [](const ParallelCase& one) {
    std::set<std::string> names;
    for (const ComparedValue& value : check_case(one).values)
      if (!value.without.empty()) names.insert(value.name);
    return names;
  };
  CHECK(without({"stdit", 1, ""}).empty());
  CHECK(without({"autoregressive", 1, ""}).empty());
  const std::string block = "transformer_blocks.0.";
  CHECK(without({"stdit", 1, "", Samples::images}) ==
        std::set<std::string>{
            block + "attn_temporal.to_q.weight", block + "attn_temporal.to_k.weight",
            block + "attn_temporal.norm_q.weight", block + "attn_temporal.norm_k.weight"});
  CHECK(without({"moviegen", 1, "diffusion: {text_dropout: 1}"}) ==
        std::set<std::string>{block + "attn2.to_q.weight", block + "attn2.to_k.weight",
                              block + "attn2.to_v.weight", block + "attn2.to_out.weight"});
}

TEST_CASE("check parallel: a Wan has the gradients of one rank on three layouts") {
  compare_wan(4);
}

TEST_CASE("check parallel: a Wan has the gradients of one rank, whatever backward recomputes",
          "[nightly]") {
  compare_wan(1);
}

TEST_CASE("check parallel: a gradient of terms that cancel has a limit by its rounding") {
  // The keys of few tokens are nearly alike, and softmax does not see what all have in common.
  const ParallelCheck check =
      check_case({"wan", 2, "parallel: {tp: 2}\nmodel: {num_attention_heads: 2, num_layers: 2}"});
  INFO(check.words());
  CHECK(check.passed);
  const auto limit_of = [&](const std::string& name) {
    return std::ranges::find(check.values, name, &ComparedValue::name)->limit;
  };
  const double keys = std::max(limit_of("transformer_blocks.0.attn2.to_k.bias"),
                               limit_of("transformer_blocks.1.attn2.to_k.bias"));
  CHECK((keys > 1e-4 && keys < 1e-2));
  CHECK(limit_of("transformer_blocks.0.attn2.to_v.bias") == 1e-4);
  CHECK(limit_of("proj_out.weight") == 1e-4);
}

TEST_CASE("check parallel: a layout that cannot be is refused before any work") {
  const auto refused = [](const ParallelCase& one) {
    return usage_error([&] { check_case(one); });
  };
  CHECK_THAT(refused({"dit", 3, "parallel: {tp: 3}"}),
             Catch::EndsWith("; on 3 ranks parallel.tp=1 can be"));
  CHECK_THAT(refused({"stdit", 2, "parallel: {cp: 2, cp_kind: gather}"}),
             Catch::Contains("; on 2 ranks parallel.cp_kind=auto can be"));
  CHECK_THAT(refused({"dit", 4, "parallel: {pp: 2, shard: full, reshard: true}"}),
             Catch::Contains("'parallel.reshard' is true, and 'parallel.pp' is 2: the ranks that"));
  CHECK_THAT(refused({"dit", 2, "parallel: {cp: 2, hybrid: true}"}),
             Catch::Contains("parallel.hybrid is for model.type=stdit"));
  CHECK_THAT(refused({"dit", 4, "parallel: {cp: 4, cp_kind: all_to_all+ring, cp_heads: 3}"}),
             Catch::Contains("cp_heads=3 does not divide parallel.cp=4"));
  CHECK_THAT(refused({"dit", 2, "parallel: {pp: 2}"}),
             Catch::Contains("1 block is not shared by 2 stages of a pipeline"));
  CHECK_THAT(usage_error([] {
               make_recipe(parse_yaml("model: {type: tokenizer}\nparallel: {pp: 2}", "tokenizer"));
             }),
             Catch::Contains("has no stages"));
  CHECK_THAT(refused({"dit", 2, "parallel: {pp: 2, stages: [1, 1]}\nmodel: {num_layers: 3}"}),
             Catch::Contains("2 blocks together, and 'model.num_layers' is 3"));
  CHECK_THAT(refused({"dit", 2, "parallel: {pp: 2, stages: [3]}\nmodel: {num_layers: 3}"}),
             Catch::Contains("must be 2 numbers"));
  CHECK_THAT(refused({"dit", 2, "parallel: {vpp: 2}"}), Catch::Contains("'parallel.pp' is 1"));
}

TEST_CASE("check parallel: the model has the memory that reading the data leaves") {
  struct Reading final : Dataset {
    explicit Reading(const Dataset& all) : data(all) {}
    const data::SampleIndex& index() const override { return data.index(); }
    const Json& info() const override { return data.info(); }
    double device_bytes() const override { return 1e18; }
    void fit_model(Recipe& recipe) const override { data.fit(recipe); }
    CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
      return data.read(i, seen);
    }
    const Dataset& data;
  };
  const std::string message = usage_error([] {
    check_case({"dit", 2, "parallel: {tp: 2}"}, {},
               [](const Dataset& data, int /*rank*/) { return std::make_unique<Reading>(data); });
  });
  CHECK_THAT(message, Catch::Contains("optimizer's state need about"));
}

TEST_CASE("check parallel: its record and its table say what was compared") {
  const ParallelCheck check = check_case({"dit", 2, "parallel: {tp: 2}"});
  const Json record = check.to_json();
  CHECK(record["kind"] == "parallel_check");
  CHECK(record["layout"] == "tp=2 cp=1 dp=1 pp=1");
  CHECK(record["compute"] == "f32");
  CHECK(record["passed"] == true);
  REQUIRE(record["values"].size() == check.values.size());
  double before = INFINITY;
  for (const Json& value : record["values"]) {
    CHECK(value["passed"] == true);
    CHECK(value["one_rank"] > 0);
    const std::string name = value["name"].get<std::string>();
    const bool later = name.find(" of step") != std::string::npos || name == "validation";
    if (later)
      CHECK(value["limit"] == (name.starts_with("loss") || name == "validation" ? 1e-4 : 1e-3));
    else
      CHECK(value["limit"] == (name == "loss" || name == "gradient norm" ? 1e-5 : 1e-4));
    const double share = value["difference"].get<double>() / value["limit"].get<double>();
    CHECK(share <= before);
    before = share;
    CHECK_THAT(check.words(), Catch::Contains(value["name"].get<std::string>()));
  }
  CHECK(record["one_rank_bytes"] > 1e6);
  CHECK_THAT(check.words(),
             Catch::Contains("\n0 of " + std::to_string(check.values.size()) + " values differ"));
}
