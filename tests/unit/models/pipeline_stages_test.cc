// How blocks are dealt out to the chunks of a pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit/pipeline_stages.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "models/dit/dit.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;

namespace {

double fullest(const PartWork& work, const std::vector<int>& stages) {
  double most = 0;
  for (std::size_t i = 0; i < stages.size(); ++i)
    most = std::max(most, work.block * stages[i] + (i == 0 ? work.embed : 0) +
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
  for (const PartWork& work :
       {PartWork{0, 1, 0}, PartWork{0.5, 1, 2.6}, PartWork{3, 1, 0.1}, PartWork{1, 5, 40}})
    for (int pp = 1; pp <= 4; ++pp)
      for (int vpp = 1; vpp <= 2; ++vpp)
        for (int blocks = pp * vpp; blocks <= 11; ++blocks) {
          CAPTURE(work.embed, work.head, pp, vpp, blocks);
          const std::vector<int> stages = balance_stages(work, blocks, pp, vpp);
          REQUIRE(stages.size() == static_cast<std::size_t>(pp * vpp));
          CHECK(std::accumulate(stages.begin(), stages.end(), 0) == blocks);
          CHECK(*std::ranges::min_element(stages) >= 1);
          std::vector<int> none;
          CHECK(fullest(work, stages) == Approx(least(work, blocks, none, stages.size())));
        }
  CHECK(balance_stages({0, 1, 0}, 7, 2, 1) == std::vector<int>{3, 4});
  CHECK(balance_stages({0, 1, 2}, 8, 2, 1) == std::vector<int>{5, 3});
  CHECK_THAT(usage_error([] {
               balance_stages({0, 1, 0}, 5, 3, 2);
             }),
             Catch::Contains("5 blocks are not shared by 3 stages"));
}

TEST_CASE("the work of a network's parts is that of its products") {
  NetworkConfig config;
  config.in_channels = config.out_channels = 4;
  config.num_attention_heads = 2, config.attention_head_dim = 16;
  config.text_embed_dim = 8, config.own<models::DitFields>().adaln_lora_dim = 4;
  config.max_size = {8, 16, 16};
  config.num_layers = 9;  // of which one is enough to know
  const PartWork work = part_work(config, {{4, 8, 8, 0, 0, 3}}, DType::f32);
  // 64 tokens of width 32: (4 + 1) * 4 numbers of a patch in, 16 out. Forward and twice that back;
  // nothing flows back to the patches.
  CHECK(work.embed == Approx(2 * 2.0 * 64 * 32 * 20));
  const double head = 3 * 2.0 * 64 * 32 * 16;
  CHECK(work.head >= head);
  CHECK(work.head < 2 * head);  // and its norm's modulation
  const double matrices = 3 * 2.0 * 64 * 32 * 32 * (4 + 2 + 2 * 4);
  CHECK(work.block > matrices);
  CHECK(work.block < 2 * matrices);
}
