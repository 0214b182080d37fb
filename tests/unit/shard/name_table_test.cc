// SPDX-License-Identifier: Apache-2.0
#include "shard/name_table.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

using namespace vfm;

TEST_CASE("a table of names numbers them as they come") {
  shard::NameTable names;
  CHECK_FALSE(names.find("a"));
  CHECK(names.add("b") == std::pair<std::uint32_t, bool>{0, true});
  CHECK(names.add("") == std::pair<std::uint32_t, bool>{1, true});
  CHECK(names.add("b") == std::pair<std::uint32_t, bool>{0, false});
  for (int i = 0; i < 1000; ++i)
    CHECK(names.add(std::to_string(i)).first == static_cast<std::uint32_t>(i) + 2);
  CHECK(names.size() == 1002);
  CHECK(names.name(0) == "b");
  CHECK(names.name(1).empty());
  for (int i = 0; i < 1000; ++i) {
    CHECK(names.name(static_cast<std::uint32_t>(i) + 2) == std::to_string(i));
    CHECK(names.find(std::to_string(i)).value() == static_cast<std::uint32_t>(i) + 2);
  }
  CHECK_FALSE(names.find("1000"));
  CHECK(names.text().substr(0, 4) == "b012");
  CHECK(names.ends()[2] == 2);
}
