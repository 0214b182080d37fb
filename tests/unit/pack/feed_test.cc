// SPDX-License-Identifier: Apache-2.0
#include "pack/feed.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace vfm;
using namespace vfm::pack;
using Catch::Contains;

TEST_CASE("a sample's split is what it says itself, and its shard's record agrees") {
  ClipShard shard;
  shard.split = "train";
  const auto split = [&](const std::string& json) {
    return split_of({"k", {{"mp4", ""}, {"json", json}}}, shard);
  };
  CHECK(split_of({"k", {{"mp4", ""}}}, shard) == "train");
  CHECK(split(R"({"split":"val"})") == "val");
  CHECK(split(R"({"split":null})") == "train");
  CHECK(split(R"({"caption":"a split second"})") == "train");
  CHECK(split(R"(["split"])") == "train");
  CHECK(split(R"({"split":)") == "train");  // told where the sample is worked on
  CHECK_THROWS_WITH(split(R"({"split":1})"), Contains("not a text: 1"));
  CHECK_THROWS_WITH(split(R"({"split":"../val"})"), Contains("cannot name a folder"));
  CHECK_THROWS_WITH(split(R"({"split":""})"), Contains("cannot name a folder"));
  shard.split_given = true;
  CHECK(split(R"({"split":"train"})") == "train");
  CHECK_THROWS_WITH(split(R"({"split":"val"})"), Contains("make them agree"));
}
