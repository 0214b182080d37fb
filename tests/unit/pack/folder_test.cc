// SPDX-License-Identifier: Apache-2.0
#include "pack/folder.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"

using namespace vfm;
using namespace vfm::pack;

TEST_CASE("channel statistics, and channels that do not vary") {
  ChannelSums sums, more;
  sums.count = 2, sums.sum = {4, 6}, sums.squares = {10, 18};  // 1, 3 and 3, 3
  more.count = 1, more.sum = {2, 3}, more.squares = {4, 9};
  sums.add(more);
  const Json statistics = channel_statistics(sums);
  CHECK(statistics["mean"] == Json{2.0, 3.0});
  CHECK(statistics["std"][0].get<double>() == Approx(std::sqrt(2.0 / 3)));
  CHECK(statistics["std"][1] == 1.0);
  const ChannelSums again = ChannelSums::from_json(Json::parse(dump_json(sums.to_json())), 2);
  CHECK(again.sum == sums.sum);
  CHECK(again.squares == sums.squares);
  CHECK_THROWS_AS(ChannelSums::from_json(sums.to_json(), 3), Error);
}
