// SPDX-License-Identifier: Apache-2.0
#include "dist/world.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace vfm::dist;

TEST_CASE("world: one process alone") {
  const auto world = self_world();
  CHECK(world->size() == 1);
  CHECK(world->rank() == 0);
  CHECK_FALSE(world->host().empty());
  std::vector<float> values = {1, 2, 3};
  world->all_reduce_sum(std::span<float>(values));
  broadcast(*world, std::span<float>(values));
  CHECK(values == std::vector<float>{1, 2, 3});
  CHECK(broadcast(*world, std::string("text")) == "text");
  CHECK(world->gather("a") == std::vector<std::string>{"a"});
  world->barrier();
}
