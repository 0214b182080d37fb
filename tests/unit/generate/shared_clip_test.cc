// Ranks that make a clip together: who they are, and the output of one rank's network.
// SPDX-License-Identifier: Apache-2.0
#include "generate/shared_clip.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "dist/threads.h"
#include "support/noise.h"
#include "support/small_networks.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::generate;
using Catch::Matchers::Contains;

namespace {

models::NetworkConfig network_of(models::NetworkType type) {
  models::NetworkConfig config = type == models::NetworkType::stdit ? tiny_stdit() : tiny_dit();
  config.type = type;
  config.num_attention_heads = 4;
  return config;
}

/// A guided clip: two samples of one size with texts of two lengths.
models::NetworkBatch guided(const models::NetworkConfig& c, std::size_t samples) {
  models::NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {3, 4, 6, 12.f, 0.4f, 5}};
  batch.samples.resize(samples);
  batch.latents = noise_tensor({static_cast<std::int64_t>(samples) * c.in_channels * 72}, 1);
  batch.text = noise_tensor({samples == 2 ? 8 : 3, c.text_embed_dim}, 2);
  return batch;
}

/// Of each parameter what this rank holds, of values that depend on its name alone.
void fill(const models::DiffusionNetwork& network) {
  for (nn::Parameter* p : network.parameters()) {
    const Tensor whole = noise_tensor(p->placement.global, random_key(p->name));
    const Tensor part(p->shape());
    const Shape& global = p->placement.global;
    for (std::int64_t i = 0; i < part.elements(); ++i) {
      std::int64_t at = 0, rest = i;
      std::vector<std::int64_t> index(global.size());
      for (std::size_t d = global.size(); d-- > 0; rest /= p->shape()[d])
        index[d] = rest % p->shape()[d] + p->placement.offset[d];
      for (std::size_t d = 0; d < global.size(); ++d)
        at = at * global[d] + index[d];
      part.floats()[i] = 0.1f * whole.floats()[at];
    }
    p->write(part);
  }
}

}  // namespace

TEST_CASE("--parallel is read, and what cannot be is refused") {
  const ClipParallel all = parse_parallel("cfg=2,cp=4,tp=3,cp_kind=ring");
  CHECK(all.cfg == 2);
  CHECK(all.cp == 4);
  CHECK(all.tp == 3);
  CHECK(all.ranks() == 24);
  CHECK(all.name() == "cfg=2 cp=4 ring tp=3");
  CHECK(parse_parallel("").alone());
  CHECK(parse_parallel("").name().empty());
  for (const char* wrong : {"cfg=3", "cp=0", "cp=", "cp", "tp=x", "tp=2x", "dp=2", "cp_kind=ring",
                            "cp=2,cp_kind=star", "tp=-1", "tp=99999999999"})
    CHECK_THROWS_AS(parse_parallel(wrong), Error);
  CHECK_THAT(usage_error([] { check_ranks(parse_parallel("cfg=2"), 3); }),
             Contains("2 ranks make a clip together, and 3 are no multiple"));
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
  for (const models::NetworkType type : {models::NetworkType::dit, models::NetworkType::stdit}) {
    const models::NetworkConfig config = network_of(type);
    const auto alone = models::make_network(config, 1, DType::f32, Device::cpu, false);
    fill(*alone);
    for (const std::string text : {"cfg=2", "tp=2", "cp=2", "cfg=2,cp=2,tp=2"})
      for (const std::size_t samples : {1, 2}) {
        INFO(models::network_type_name(type) << " " << text << ", samples " << samples);
        const models::NetworkBatch batch = guided(config, samples);
        ops::Tape silent(false);
        const Tensor wanted = alone->forward(silent, batch);
        const ClipParallel parallel = parse_parallel(text);
        const models::CpChoice cp{type == models::NetworkType::stdit ? models::CpKind::all_to_all
                                                                     : models::CpKind::gather,
                                  parallel.cp};
        std::vector<Tensor> got(2);
        for (Tensor& one : got)
          dist::thread_worlds(parallel.ranks(), [&](dist::World& world) {
            const ClipRanks ranks(world, parallel, cp);
            const auto own =
                models::make_network(config, 1, DType::f32, Device::cpu, false, ranks.network());
            fill(*own);
            SharedClip clip(*own, ranks);
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
