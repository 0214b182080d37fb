// How blocks are dealt out to the chunks of a pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit/pipeline_stages.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <tuple>
#include <vector>

#include "models/dit/dit.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;

namespace {

/// Of blocks that are alike.
PartWork parts(double embed, double block, double head, int blocks) {
  return {embed, head, std::vector<double>(static_cast<std::size_t>(blocks), block), {}};
}

double fullest(const PartWork& work, const std::vector<int>& stages) {
  double most = 0;
  auto block = work.blocks.begin();
  for (std::size_t i = 0; i < stages.size(); block += stages[i++])
    most = std::max(most, std::accumulate(block, block + stages[i], i == 0 ? work.embed : 0) +
                              (i + 1 == stages.size() ? work.head : 0));
  return most;
}

// The least that the fullest of `left` more chunks can have, by trying all.
double least(const PartWork& work, int blocks, std::vector<int>& so_far, std::size_t left) {
  if (left == 1) {
    so_far.push_back(blocks);
    const double most = fullest(work, so_far);
    so_far.pop_back();
    return most;
  }
  double best = 1e300;
  for (int here = 1; here <= blocks - static_cast<int>(left) + 1; ++here) {
    so_far.push_back(here);
    best = std::min(best, least(work, blocks - here, so_far, left - 1));
    so_far.pop_back();
  }
  return best;
}

}  // namespace

TEST_CASE("chunks of a pipeline have about as much work, the embedding and the head counted") {
  for (const auto& [embed, block, head] :
       {std::tuple{0., 1., 0.}, {0.5, 1., 2.6}, {3., 1., 0.1}, {1., 5., 40.}})
    for (int pp = 1; pp <= 4; ++pp)
      for (int vpp = 1; vpp <= 2; ++vpp)
        for (int blocks = pp * vpp; blocks <= 11; ++blocks) {
          CAPTURE(embed, head, pp, vpp, blocks);
          const PartWork work = parts(embed, block, head, blocks);
          const std::vector<int> stages = balance_stages(work, pp, vpp);
          REQUIRE(stages.size() == static_cast<std::size_t>(pp * vpp));
          CHECK(std::accumulate(stages.begin(), stages.end(), 0) == blocks);
          CHECK(*std::ranges::min_element(stages) >= 1);
          std::vector<int> none;
          CHECK(fullest(work, stages) == Approx(least(work, blocks, none, stages.size())));
        }
  CHECK(balance_stages(parts(0, 1, 0, 7), 2, 1) == std::vector<int>{3, 4});
  CHECK(balance_stages(parts(0, 1, 2, 8), 2, 1) == std::vector<int>{5, 3});
  CHECK_THAT(usage_error([] { balance_stages(parts(0, 1, 0, 5), 3, 2); }),
             Catch::Contains("5 blocks are not shared by 3 stages"));
}

TEST_CASE("chunks of blocks that are not alike: none could have less, and then they are even") {
  for (const std::vector<double>& blocks :
       {std::vector<double>{1, 1, 1, 2, 2, 2}, {5, 1, 1, 1, 1, 1, 1}, {1, 1, 3, 1, 9, 1, 1, 2}})
    for (int pp = 1; pp <= 4; ++pp) {
      const PartWork work{0.5, 1.5, blocks, {}};
      CAPTURE(blocks.front(), blocks.size(), pp);
      const std::vector<int> stages = balance_stages(work, pp, 1);
      REQUIRE(stages.size() == static_cast<std::size_t>(pp));
      const int count = static_cast<int>(blocks.size());
      CHECK(std::accumulate(stages.begin(), stages.end(), 0) == count);
      CHECK(*std::ranges::min_element(stages) >= 1);
      std::vector<int> none;
      CHECK(fullest(work, stages) == Approx(least(work, count, none, stages.size())));
    }
  CHECK(balance_stages({0, 0, {1, 1, 1, 1, 2, 2}, {}}, 2, 1) == std::vector<int>{4, 2});
  // The last block has most whatever the cuts are: the others are shared evenly.
  CHECK(balance_stages({0, 0, {1, 1, 1, 1, 9}, {}}, 3, 1) == std::vector<int>{2, 2, 1});
}

TEST_CASE("the work of a network's parts is that of its products") {
  NetworkConfig config;
  config.in_channels = config.out_channels = 4;
  config.num_attention_heads = 2, config.attention_head_dim = 16;
  config.text_embed_dim = 8, config.own<models::DitFields>().adaln_lora_dim = 4;
  config.max_size = {8, 16, 16};
  config.num_layers = 9;
  const PartWork work = part_work(config, {{4, 8, 8, 0, 0, 3}}, DType::f32);
  // 64 tokens of width 32: (4 + 1) * 4 numbers of a patch in, 16 out. Forward and twice that back;
  // nothing flows back to the patches.
  CHECK(work.embed == Approx(2 * 2.0 * 64 * 32 * 20));
  const double head = 3 * 2.0 * 64 * 32 * 16;
  CHECK(work.head >= head);
  CHECK(work.head < 2 * head);  // and its norm's modulation
  const double matrices = 3 * 2.0 * 64 * 32 * 32 * (4 + 2 + 2 * 4);
  REQUIRE(work.blocks.size() == 9);
  CHECK(work.blocks[8] == work.blocks[0]);
  CHECK(work.blocks[0] > matrices);
  CHECK(work.blocks[0] < 2 * matrices);
  // The modulations of three sub-layers too, and the norms of heads.
  CHECK(work.weights[8] == 32 * 32 * (4 + 2 + 2 * 4) + 2 * 32 * 8 + 3 * (32 * 4 + 4 * 96) + 4 * 16);
}
